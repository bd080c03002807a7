import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createInbox, postgres } from "../../src/index.ts";
import { workerPoints, forms, type Body, type Plan, type Point } from "./plan.ts";
import { crashTest, type CrashTest } from "./support.ts";

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
const run = { workerLeaseMs: 400 };

/** Stores messages as a receiver would, from this process. */
async function accept(
  { pool, schema }: CrashTest,
  bodies: readonly (Body & { id: string })[],
): Promise<void> {
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  const answers = await inbox.accept(
    bodies.map((body) => ({ ...body, producer: "payments", payload: JSON.stringify(body) })),
  );
  for (const { outcome } of answers) assert.equal(outcome, "stored");
}

const worker = (more: Partial<Plan> = {}): Partial<Plan> => ({ mode: "work", run, ...more });
const nothingPending = "not exists (select from pending)";

/** Effects of each key, in the order they were committed to. */
async function effectsByKey({ pool }: CrashTest, bodies: readonly Body[]): Promise<Record<string, string[]>> {
  const { rows } = await pool.query<{ id: string }>("select message_id as id from effect order by n");
  const keyOf = new Map(bodies.map(({ id, key }) => [id, key ?? ""]));
  const byKey: Record<string, string[]> = {};
  for (const { id } of rows) (byKey[keyOf.get(id) ?? ""] ??= []).push(id);
  return byKey;
}

const bodiesOf = (count: number, keys: number) =>
  Array.from({ length: count }, (_, i) => ({ id: `m${i}`, key: `k${i % keys}`, amount: i + 1 }));

const inOrder = (bodies: readonly (Body & { id: string })[]): Record<string, string[]> => {
  const byKey: Record<string, string[]> = {};
  for (const { id, key } of bodies) (byKey[key ?? ""] ??= []).push(id);
  return byKey;
};

for (const [index, point] of workerPoints.entries()) {
  const form = forms[index % forms.length]!;
  test(`a worker that dies ${where[point]}, form ${form}: another one handles it, once`, async (t) => {
    const test = await crashTest(t);
    const bodies = bodiesOf(3, 1);
    await accept(test, bodies);
    const first = test.start(worker({ form, die: { at: point, by: "SIGKILL" } }));
    assert.equal(await first.killed(), "SIGKILL");
    test.start(worker({ form }));
    await test.until(nothingPending);
    assert.deepEqual(await effectsByKey(test, bodies), inOrder(bodies));
    assert.equal(await test.balance(), 6);
    assert.deepEqual(await test.attempts(), {}, "a death is no failed attempt");
    await test.until("not exists (select from started)");
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

describe("a worker that is stopped for longer than its lease, and wakes", { concurrency: 2 }, () => {
  for (const [at, when] of [
    ["taken", "before its transaction"],
    ["claimed", "inside its transaction, before the handler"],
    ["handled", "inside its transaction, before commit"],
  ] as const satisfies readonly (readonly [Point, string])[]) {
    test(`${when}: nothing is lost, doubled or out of order`, async (t) => {
      const test = await crashTest(t);
      const bodies = bodiesOf(40, 5);
      await accept(test, bodies);
      const zombie = test.start(worker({ die: { at, by: "SIGSTOP" }, inbox: { lanes: 2 } }));
      await test.until("exists (select from pending_lane where leased_until < clock_timestamp())");
      const other = test.start(worker());
      if (at === "taken") await test.until(nothingPending);
      // The lanes are the other one's now, though a transaction of the stopped one may still hold some of their rows.
      else {
        await test.until(
          `not exists (select from pending join pending_lane using (consumer, lane)
                        where leased_until < clock_timestamp() - interval '500 milliseconds')`,
        );
      }
      process.kill(zombie.child.pid!, "SIGCONT");
      await test.until(nothingPending);
      assert.deepEqual(await effectsByKey(test, bodies), inOrder(bodies));
      assert.equal(await test.balance(), (40 * 41) / 2);
      assert.deepEqual(await test.attempts(), {});
      assert.deepEqual(await test.quarantined(), []);
      assert.equal(zombie.child.exitCode, null, "it lives");
      assert.equal(other.child.exitCode, null);
    });
  }
});

for (const mode of ["work", "inline"] as const) {
  test(`abort() on one message of 1,000, ${mode}: 999 effects, one is crashed, and few processes die`, async (t) => {
    const test = await crashTest(t, { prefetch: 1_000 });
    const bodies = Array.from({ length: 1_000 }, (_, i) => ({
      id: i === 500 ? "poison" : `m${i}`,
      // Nothing of the poison's key comes behind it.
      key: i === 500 ? "poison" : `k${i % 50}`,
      amount: 1,
    }));
    if (mode === "work") await accept(test, bodies);
    else test.publish(bodies);
    const plan: Partial<Plan> = {
      mode,
      run,
      poison: { id: "poison", by: "abort" },
      inbox: { lanes: 4, maxCrashes: 2 },
    };
    let deaths = 0;
    const done = test.until(
      "(select count(*) from effect) >= 999 and exists (select from quarantine) and not exists (select from pending)",
      90_000,
    );
    for (let over = false; !over;) {
      const died = test
        .start(plan)
        .killed()
        .then(() => "died");
      died.catch(() => undefined);
      over = (await Promise.race([done.then(() => "done"), died])) === "done";
      if (over) break;
      if (++deaths > 6) throw new Error("Seven processes died.");
      await test.until(
        "not exists (select from worker where closed_at is null and lease_until > clock_timestamp())",
      );
    }
    assert.ok(deaths <= 3, `${deaths} deaths`);
    assert.deepEqual(await test.quarantined(), ["poison: crashed, 2, 1"]);
    const effects = await test.effects();
    assert.equal(Object.keys(effects).length, 999);
    assert.ok(Object.values(effects).every((times) => times === 1));
    assert.deepEqual(await test.attempts(), {});
  });
}
