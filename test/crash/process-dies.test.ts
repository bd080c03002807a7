import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { forms, points, type Point } from "./plan.ts";
import { crashTest } from "./support.ts";

const where: Record<(typeof points)[number], string> = {
  begun: "before the claim",
  claimed: "after the claim and before the handler",
  handler: "inside the handler",
  handled: "after the handler and before commit",
  "commit sent": "while commit is on the wire",
  committed: "after commit and before ack",
  outcome: "after the outcome and before the source is told",
  settled: "after the source was told",
};

const committed: readonly Point[] = ["committed", "outcome", "settled"];

for (const form of forms) {
  describe(`handler form ${form}`, { concurrency: 3 }, () => {
    for (const point of points) {
      test(`delivers once when the process dies ${where[point]}`, async (t) => {
        const { publish, start, broker, effects, balance, attempts, pool } = await crashTest(t);
        publish([{ id: "m1", amount: 7 }]);
        assert.equal(await start({ form, die: { at: point, by: "SIGKILL" } }).killed(), "SIGKILL");
        // Where the first process had told the broker, it forgot that, and sends the message again.
        if (point === "settled") {
          assert.equal(broker.counts().acks, 1);
          publish([{ id: "m1", amount: 7 }], { redelivered: true });
        }
        const second = start({ form });
        await broker.drained();

        assert.deepEqual(await effects(), { m1: 1 });
        assert.equal(await balance(), 7);
        assert.deepEqual(await attempts(), {}, "a death is no failed attempt");
        assert.equal(broker.counts().redeliveries, 1);
        if (point !== "commit sent") {
          assert.deepEqual(second.outcomes, [committed.includes(point) ? "m1: duplicate" : "m1: applied"]);
        }
        const { rows } = await pool.query("select processed_at is not null as processed from message");
        assert.deepEqual(rows, [{ processed: true }]);
      });
    }
  });
}

test("applies every message once when process after process dies, each at another point, with four lanes at work", async (t) => {
  const { publish, start, broker, effects, balance, attempts, quarantined } = await crashTest(t);
  const bodies = Array.from({ length: 300 }, (_, i) => ({ id: `m${i}`, key: `k${i % 7}`, amount: i }));
  publish(bodies);
  let round = 0;
  for (const at of points) {
    await start({ form: forms[round++ % forms.length]!, die: { at, by: "SIGKILL" } }).killed();
  }
  start();
  await broker.drained();

  assert.deepEqual(await effects(), Object.fromEntries(bodies.map(({ id }) => [id, 1])));
  assert.equal(
    await balance(),
    bodies.reduce((sum, { amount }) => sum + amount, 0),
  );
  assert.deepEqual(await attempts(), {});
  assert.deepEqual(await quarantined(), []);
});
