import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test, type TestContext } from "node:test";
import { migrate, postgres } from "../../src/index.ts";
import { testDatabase } from "../support/postgres.ts";

async function progressCase(t: TestContext) {
  const { pool, schema } = await testDatabase(t);
  await migrate(pool, { schema });
  const { progress, cleanup } = postgres(pool, { schema });
  const report = (worker: string, behindMs: number | undefined, everyMs = 15_000): Promise<void> =>
    progress.report("accounting", "orders", worker, { behindMs, everyMs });
  /** Lets so many seconds pass for all that is stored. */
  const pass = async (seconds: number): Promise<void> => {
    await pool.query(
      `update source_clock set since = since - $1 * interval '1 second', caught_up_at = caught_up_at - $1 * interval '1 second',
              advanced_at = advanced_at - $1 * interval '1 second'`,
      [seconds],
    );
    await pool.query(
      `update source_worker set caught_up_at = caught_up_at - $1 * interval '1 second', seen_until = seen_until - $1 * interval '1 second'`,
      [seconds],
    );
    await pool.query(
      "update source_stop set from_at = from_at - $1 * interval '1 second', to_at = to_at - $1 * interval '1 second'",
      [seconds],
    );
  };
  const stops = async (): Promise<number[]> =>
    (
      await pool.query<{ seconds: number }>(
        "select round(extract(epoch from to_at - from_at))::int as seconds from source_stop order by to_at",
      )
    ).rows.map(({ seconds }) => seconds);
  const state = async (): Promise<string | undefined> => (await progress.list("accounting"))[0]?.state;
  return { pool, progress, cleanup, report, pass, stops, state };
}

test("a source is never caught up before the first report that says so, and its clock begins there", async (t) => {
  const { progress, report, state } = await progressCase(t);
  const worker = randomUUID();
  await report(worker, undefined);
  assert.equal(await state(), "never");
  await report(worker, 5_000);
  const [one] = await progress.list();
  assert.equal(one?.state, "caught-up");
  assert.equal(one.since!.getTime(), one.caughtUpAt!.getTime());
  assert.equal(one.workers, 1);
});

test("without an advance for four reports it stands still, and the time is a stop when it goes on", async (t) => {
  const { report, pass, stops, state } = await progressCase(t);
  const worker = randomUUID();
  await report(worker, 0);
  await pass(59);
  assert.equal(await state(), "caught-up");
  await report(worker, 0);
  assert.deepEqual(await stops(), []);
  await pass(7_200);
  assert.equal(await state(), "standing");
  await report(worker, undefined);
  assert.equal(await state(), "standing", "a worker that has not caught up advances nothing");
  await report(worker, 0);
  assert.equal(await state(), "caught-up");
  assert.deepEqual(await stops(), [7_200]);
});

test("a source that is steadily an hour behind makes progress", async (t) => {
  const { report, pass, stops, state } = await progressCase(t);
  const worker = randomUUID();
  for (let i = 0; i < 5; i++) {
    await report(worker, 3_600_000);
    assert.equal(await state(), "caught-up");
    await pass(15);
  }
  assert.deepEqual(await stops(), []);
});

test("is as far as the slowest of its workers; one that left, or gave no sign for four reports, has no say", async (t) => {
  const { progress, report, pass, state } = await progressCase(t);
  const [fast, slow] = [randomUUID(), randomUUID()];
  await report(fast, 0);
  await report(slow, undefined);
  await pass(50);
  await report(fast, 0);
  await pass(20);
  assert.equal(await state(), "standing");
  await report(fast, 0);
  assert.equal(await state(), "caught-up", "the slow one gave no sign for 70 seconds");
  await report(slow, undefined);
  await pass(61);
  await report(slow, undefined);
  await report(fast, 0);
  assert.equal(await state(), "standing");
  await progress.leave("accounting", "orders", slow);
  await report(fast, 0);
  assert.equal(await state(), "caught-up");
});

test("a report that comes late, or twice, moves nothing back; and many at once are one", async (t) => {
  const { pool, progress, report } = await progressCase(t);
  const workers = Array.from({ length: 8 }, () => randomUUID());
  await Promise.all(workers.flatMap((worker) => [report(worker, 1_000), report(worker, 60_000)]));
  const [before] = await progress.list();
  await report(workers[0]!, 3_600_000);
  const [after] = await progress.list();
  assert.equal(after!.caughtUpAt!.getTime(), before!.caughtUpAt!.getTime());
  assert.equal((await pool.query("select from source_worker")).rowCount, 8);
});

test("a source that is retired is gone, and begins anew when it reports again", async (t) => {
  const { progress, report, pass, state, stops } = await progressCase(t);
  await report(randomUUID(), 0);
  await pass(600);
  await report(randomUUID(), 0);
  assert.deepEqual(await stops(), [600]);
  assert.equal(await progress.retire("accounting", "orders"), true);
  assert.deepEqual([await state(), await stops()], [undefined, []]);
  assert.equal(await progress.retire("accounting", "orders"), false);
  await report(randomUUID(), undefined);
  assert.equal(await state(), "never");
});

test("names that hold anything are names", async (t) => {
  const { progress } = await progressCase(t);
  const hostile = `kafka:"'; drop table message; --\u{1f600}`;
  await progress.report(hostile, hostile, randomUUID(), { behindMs: 0, everyMs: 1_000 });
  assert.equal((await progress.list(hostile))[0]?.source, hostile);
});
