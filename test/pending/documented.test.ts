import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleDatabase, examplesOf, runExample } from "../support/run-example.ts";

const [inboxAndHandler = "", acceptAndWork = ""] = examplesOf("docs/pending.md");

test("the examples of docs/pending.md store a payment and work on it, once", async (t) => {
  const database = await exampleDatabase(t);
  const rest = `
    const again = await inbox.accept({ producer: "shop", id: "p-1", key: "a", payload: '{"account":"a","amount":5}' });
    while (worker.stats().outcomes.applied < 1) await new Promise((resolve) => setTimeout(resolve, 10));
    await worker.stop();
    const { outcomes } = await inbox.work(credit, { untilDrained: true }).finished;
    console.log(answer.outcome, again.settle, outcomes.applied);
    await pool.end();`;
  assert.equal(
    await runExample(t, database, "pending", inboxAndHandler + acceptAndWork + rest, {}),
    "stored ack 0\n",
  );
  const { rows } = await database.pool.query("select balance::int as balance from account");
  assert.deepEqual(rows, [{ balance: 5 }]);
});
