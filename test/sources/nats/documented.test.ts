import assert from "node:assert/strict";
import test from "node:test";
import { exampleDatabase, examplesOf, followedBy, runExample } from "../../support/run-example.ts";
import { service } from "../../services/service.ts";
import { streamAt } from "./support.ts";

const [process_ = "", publishing = ""] = examplesOf("docs/nats.md");
const payment = JSON.stringify({ account: "a", amount: 5 });

// Behind an example: waits until both deliveries have their outcome, then stops as SIGTERM would.
const untilTwo = `
  while (run.stats().settled < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  const { outcomes } = await run.stop();
  console.log(outcomes.applied, outcomes.rejected);
  await connection.close();
  await pool.end();`;

test("the process of docs/nats.md applies a payment and keeps one without an id, as it says", async (t) => {
  const facts = await service(t, "nats");
  if (facts === undefined) return;
  const at = await streamAt(t, facts, { durable_name: "accounting" });
  const database = await exampleDatabase(t);
  await at.publish(payment, "e1");
  await at.publish(payment);
  const env = { NATS_URL: facts.url, STREAM: at.stream };
  assert.equal(await runExample(t, database, "nats", followedBy(process_, untilTwo), env), "1 1\n");
  const { rows } = await database.pool.query("select balance::int as balance from account");
  assert.deepEqual(rows, [{ balance: 5 }]);
});

test("docs/nats.md counts an answered duplicate as published", async (t) => {
  const database = await exampleDatabase(t);
  assert.equal(await runExample(t, database, "nats", `${publishing}\nconsole.log(done);`, {}), "true\n");
});
