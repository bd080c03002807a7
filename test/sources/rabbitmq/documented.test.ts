import assert from "node:assert/strict";
import test from "node:test";
import { exampleDatabase, examplesOf, followedBy, runExample } from "../../support/run-example.ts";
import { testQueue } from "./support.ts";

const [process_ = "", connection = ""] = examplesOf("docs/rabbitmq.md");
const payment = JSON.stringify({ account: "a", amount: 5 });

// Behind an example: waits until both deliveries have their outcome, then stops as SIGTERM would.
const untilTwo = `
  while (run.stats().settled < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  const { outcomes } = await run.stop();
  console.log(outcomes.applied, outcomes.duplicate);
  await pool.end();`;

test("the process of docs/rabbitmq.md applies a payment once, as it says", async (t) => {
  const at = await testQueue(t);
  if (at === undefined) return;
  const database = await exampleDatabase(t);
  for (let i = 0; i < 2; i++) await at.publish(payment, { messageId: "e1", headers: { account: "a" } });
  const env = { AMQP_URL: at.url, QUEUE: at.queue };
  assert.equal(await runExample(t, database, "rabbitmq", followedBy(process_, untilTwo), env), "1 1\n");
  const { rows } = await database.pool.query("select balance::int as balance from account");
  assert.deepEqual(rows, [{ balance: 5 }]);
  assert.equal(await at.ready(), 0);
});

test("the source of docs/rabbitmq.md with rabbitmq-client starts, and says where it could not ask", async (t) => {
  const at = await testQueue(t);
  if (at === undefined) return;
  const database = await exampleDatabase(t);
  const rest = `
    const warnings: string[] = [];
    await source.start({
      facts: { consumer: "c", lanes: 1, maxInHand: 10, maxInHandBytes: 1e6, handlerTimeoutMs: 1e3, extendEveryMs: 1e4 },
      deliver: async () => undefined, warn: (text) => void warnings.push(text), end: () => undefined,
    });
    await source.close();
    console.log(warnings.length > 0);`;
  const env = { AMQP_URL: at.url, QUEUE: at.queue, MONITOR_PASSWORD: "nobody" };
  const unreachable = connection.replace("http://localhost:15672", "http://127.0.0.1:1");
  assert.equal(await runExample(t, database, "rabbitmq", unreachable + rest, env), "true\n");
});
