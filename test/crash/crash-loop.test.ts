import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { crashTest, type Consumer, type CrashTest } from "./support.ts";

const leaseMs = 300;
/** For process after process, each of which waits for the lease of the one before. */
const patienceMs = 180_000;
const nobodySeemsAlive =
  "not exists (select from worker where closed_at is null and lease_until > clock_timestamp())";

describe("a message that kills its process", { concurrency: 2 }, () => {
  for (const by of ["SIGKILL", "abort"] as const) {
    test(`is put into quarantine after two deaths by ${by}, and its neighbours are applied once and not counted`, async (t) => {
      const test = await crashTest(t);
      const { publish, broker, effects, attempts, quarantined, pool } = test;
      const ids = Array.from({ length: 30 }, (_, i) => (i === 12 ? "poison" : `m${i}`));
      publish(ids.map((id, i) => ({ id, amount: 1, key: `k${i % 5}` })));
      const start = (): Consumer =>
        test.start({
          poison: { id: "poison", by },
          run: { workerLeaseMs: leaseMs },
          inbox: { lanes: 4, maxCrashes: 2 },
        });

      const { deaths, last } = await runUntilDrained(test, start, async () => {
        const { rows } = await pool.query<{ message_id: string }>("select message_id from effect");
        assert.ok(!rows.some((row) => row.message_id === "poison"));
      });

      // The later ones of its own key wait for its decision.
      const followers = ["m17", "m22", "m27"];
      const neighbours = ids.filter((id) => id !== "poison" && !followers.includes(id));
      assert.deepEqual(await effects(), Object.fromEntries(neighbours.map((id) => [id, 1])));
      const waiting = await pool.query<{ id: string }>(
        "select message_id as id from pending where state = 'behind' order by position",
      );
      assert.deepEqual(
        waiting.rows.map(({ id }) => id),
        followers,
      );
      assert.deepEqual(await attempts(), {});
      assert.deepEqual(await quarantined(), ["poison: crashed, 2, 1"]);
      assert.ok(last.outcomes.includes("poison: rejected"));
      // One death finds out that there is reason for care, and two are allowed with a mark.
      assert.equal(deaths, 3);
      await test.until("not exists (select from started)");
      assert.equal(broker.counts().inHand, 0);
    });
  }

  test("leaves one mark a death, its own, with other suspects and new messages in other lanes", async (t) => {
    const test = await crashTest(t);
    const { publish, broker, effects, quarantined, pool, until } = test;
    const bodies = (name: string, count: number, poisonAt: number) =>
      Array.from({ length: count }, (_, i) => ({
        id: i === poisonAt ? `poison-${name}` : `${name}${i}`,
        amount: 1,
        key: `${name}${i % 16}`,
      }));
    const start = (): Consumer =>
      test.start({
        poison: { id: "poison", by: "SIGKILL" },
        run: { workerLeaseMs: leaseMs },
        inbox: { lanes: 4, maxCrashes: 2 },
      });
    // A first death, so that everything that was handed over before is handled with care.
    publish([{ id: "poison-first", amount: 1 }]);
    await start().killed();
    await until(nobodySeemsAlive);
    publish(bodies("old", 24, 11), { redelivered: true });
    publish(bodies("new", 24, 11));

    const marks: string[][] = [];
    await runUntilDrained(test, start, async () => {
      const { rows } = await pool.query<{ id: string }>(
        `select distinct coalesce(e.message_id, 'a poison') as id
           from started s left join message m using (digest) left join effect e using (message_id)`,
      );
      marks.push(rows.map(({ id }) => id));
    });

    assert.ok(marks.length >= 4, `${marks.length} deaths`);
    for (const left of marks)
      assert.ok(
        left.every((id) => id === "a poison"),
        `marks of ${left.join(", ")}`,
      );
    const applied = await effects();
    assert.equal(Object.keys(applied).length, 46);
    assert.ok(Object.values(applied).every((times) => times === 1));
    assert.deepEqual(
      (await quarantined()).map((entry) => entry.split(",")[0]),
      ["poison-first: crashed", "poison-new: crashed", "poison-old: crashed"],
    );
    assert.equal(broker.counts().inHand, 0);
  });

  test("counts once a death: a death while it ran with care leaves it one more try, and it is applied", async (t) => {
    const test = await crashTest(t);
    const { publish, start, broker, effects, quarantined, pool, until } = test;
    const run = { workerLeaseMs: leaseMs };
    publish([{ id: "m1", amount: 1 }]);
    await start({ run, die: { at: "claimed", by: "SIGKILL" } }).killed();
    await until(nobodySeemsAlive);
    await start({ run, die: { at: "handler", by: "SIGKILL" } }).killed();
    const { rows } = await pool.query("select 1 from started");
    assert.equal(rows.length, 1);
    const last = start({ run });
    await broker.drained();
    assert.deepEqual(await effects(), { m1: 1 });
    assert.equal(last.outcomes.at(-1), "m1: applied");
    assert.deepEqual(await quarantined(), []);
    await until("not exists (select from started)");
  });
});

test("nothing is written for a message while nothing crashes: 1,000 messages leave worker and started as 10 do", async (t) => {
  const { publish, start, broker, pool, effects } = await crashTest(t);
  await pool.query(`
    create sequence touched;
    create function touch() returns trigger language plpgsql as $$ begin perform nextval('touched'); return null; end $$;
    create trigger touch after insert or update or delete on worker for each row execute function touch();
    create trigger touch after insert or update or delete on started for each row execute function touch();`);
  const touches = async (): Promise<number> => {
    const { rows } = await pool.query<{ n: number }>(
      "select case when is_called then last_value else 0 end::int as n from touched",
    );
    return rows[0]!.n;
  };
  const bodies = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => ({ id: `m${from + i}`, key: `k${i % 7}`, amount: 1 }));
  // A lease so long that no heartbeat falls into the test.
  start({ run: { workerLeaseMs: 3_600_000 } });
  publish(bodies(0, 10));
  await broker.drained();
  const afterTen = await touches();
  assert.ok(afterTen > 0, "the worker's own row is seen by the trigger");
  publish(bodies(10, 600));
  publish(bodies(600, 1_000), { redelivered: true });
  await broker.drained();
  assert.equal(await touches(), afterTen);
  assert.equal(Object.keys(await effects()).length, 1_000);
});

/** Starts a consumer, and another one whenever one has died, until the broker has nothing left. */
async function runUntilDrained(
  { broker, until }: CrashTest,
  start: () => Consumer,
  afterDeath: () => Promise<void>,
): Promise<{ deaths: number; last: Consumer }> {
  const drained = broker.drained(patienceMs).then(() => "drained");
  drained.catch(() => undefined);
  for (let deaths = 0; deaths < 20; deaths++) {
    const consumer = start();
    const died = consumer.killed(patienceMs).then(() => "died");
    died.catch(() => undefined);
    if ((await Promise.race([drained, died])) === "drained") return { deaths, last: consumer };
    await afterDeath();
    await until(nobodySeemsAlive);
  }
  throw new Error("Twenty processes died and the messages are not settled.");
}
