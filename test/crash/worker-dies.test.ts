import assert from "node:assert/strict";
import { test } from "node:test";
import { forms, workerPoints } from "./plan.ts";
import { crashTest } from "./support.ts";
import { accept, bodiesOf, effectsByKey, inOrder, nothingPending, run, worker } from "./workers.ts";

const where: Record<(typeof workerPoints)[number], string> = {
  taking: "before it takes",
  taken: "after it took and before its lanes begin",
  begun: "before it locks what it took",
  claimed: "after the lock and before the handler",
  handler: "inside the handler",
  handled: "after the handler and before commit",
  "commit sent": "while commit is on the wire",
  committed: "after commit",
  outcome: "after the outcome and before the lane is given back",
  "giving back": "while the lane is given back",
};
for (const [index, point] of workerPoints.entries()) {
  const form = forms[index % forms.length]!;
  test(`a worker that dies ${where[point]}, form ${form}: another one handles it, once`, async (t) => {
    const test = await crashTest(t);
    const bodies = bodiesOf(3, 1);
    await accept(test, bodies);
    const first = test.start(worker({ form, die: { at: point, by: "SIGKILL" } }));
    assert.equal(await first.killed(), "SIGKILL");
    const { rows } = await test.pool.query<{ id: string }>("select id from worker");
    test.start(worker({ form }));
    await test.until(nothingPending);
    assert.deepEqual(await effectsByKey(test, bodies), inOrder(bodies));
    assert.equal(await test.balance(), 6);
    assert.deepEqual(await test.attempts(), {}, "a death is no failed attempt");
    // One whose leases ran out before, on a busy machine, took care itself: what it had committed by its death keeps its mark.
    await test.until(`not exists (select from started where worker_id <> '${rows[0]!.id}')`);
    assert.deepEqual(await test.quarantined(), []);
  });
}

test("workers that die one after another, each at another point, lose nothing, double nothing and keep each key's order", async (t) => {
  const test = await crashTest(t);
  const bodies = bodiesOf(300, 13);
  await accept(test, bodies);
  for (const [round, at] of workerPoints.entries()) {
    const form = forms[round % forms.length]!;
    await test.start(worker({ form, die: { at, by: "SIGKILL" }, inbox: { lanes: 4 } })).killed();
  }
  test.start(worker());
  test.start(worker());
  await test.until(nothingPending);
  assert.deepEqual(await effectsByKey(test, bodies), inOrder(bodies));
  assert.equal(await test.balance(), (300 * 301) / 2);
  assert.deepEqual(await test.attempts(), {});
  assert.deepEqual(await test.quarantined(), []);
});

test("a consumer that stores first and dies loses nothing and doubles nothing", async (t) => {
  const test = await crashTest(t);
  const bodies = bodiesOf(120, 7);
  test.publish(bodies);
  for (const at of ["outcome", "settled", "taken", "handler", "commit sent", "committed"] as const) {
    await test.start({ mode: "store-first", run, die: { at, by: "SIGKILL" } }).killed();
  }
  test.start({ mode: "store-first", run });
  await test.broker.drained();
  await test.until(`${nothingPending} and (select count(*) from effect) >= 120`);
  assert.deepEqual(await test.effects(), Object.fromEntries(bodies.map(({ id }) => [id, 1])));
  assert.deepEqual(await test.attempts(), {});
});
