import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { postgres, quarantine } from "../../src/index.ts";
import type { LogAsk } from "../../src/sources/source.ts";
import { openLogs, taken, upTo } from "./log-support.ts";

test("records of a log are applied in order by its cursor alone, which leaves no row for each; what comes again is a duplicate", async (t) => {
  const { member, applied, count, cursor } = await openLogs(t);
  const one = member("one");
  const log = await taken(one.take("log"));
  const settled = await one.deliver(log, upTo(100));
  assert.ok(settled.every(({ kind }) => kind === "ack"));
  assert.deepEqual(await applied(), upTo(100));
  assert.equal(await count("message"), 0);
  assert.equal(await count("pending"), 0);
  assert.equal(await cursor(), 99);

  const two = member("two");
  const again = await taken(two.take("log"));
  assert.equal(again.applied, 99n);
  await two.deliver(again, upTo(120), { previous: -1, redelivered: true });
  assert.deepEqual(await applied(), upTo(120));
  assert.equal(two.run.stats().outcomes.duplicate, 100);
});

test("gaps between offsets are passed", async (t) => {
  const { member, applied, cursor } = await openLogs(t);
  const one = member("one");
  const log = await taken(one.take("log", { begin: undefined }));
  await one.deliver(log, [7, 12, 13, 40]);
  assert.deepEqual(await applied(), [7, 12, 13, 40]);
  assert.equal(await cursor(), 40);
});

test("a record whose predecessor is not done waits for it", async (t) => {
  const { member, applied } = await openLogs(t);
  const one = member("one");
  const log = await taken(one.take("log"));
  const late = one.deliver(log, [5, 6], { previous: 4 });
  await one.deliver(log, [0, 1, 2, 3, 4]);
  await late;
  assert.deepEqual(await applied(), upTo(7));
});

test("a failed record goes to pending, those of its key behind it, and the log goes on; each is applied once", async (t) => {
  const { member, applied, count, cursor } = await openLogs(t);
  let failures = 2;
  const one = member("one", (offset) => {
    if (offset === 3 && failures-- > 0) throw new Error("not yet");
  });
  const log = await taken(one.take("log"));
  const settled = await one.deliver(log, upTo(40), { key: (offset) => (offset % 3 === 0 ? "a" : "b") });
  assert.deepEqual(new Set(settled.map(({ kind }) => kind)), new Set(["ack"]));
  assert.equal(await cursor(), 39);
  (await one.intake).end();
  await one.run.finished;
  const list = await applied();
  assert.deepEqual(
    [...list].sort((a, b) => a - b),
    upTo(40),
  );
  const ofKey = (rest: boolean): number[] => list.filter((offset) => (offset % 3 === 0) === rest);
  assert.deepEqual(
    ofKey(true),
    [...ofKey(true)].sort((a, b) => a - b),
    "in the order of its key",
  );
  assert.deepEqual(
    ofKey(false),
    [...ofKey(false)].sort((a, b) => a - b),
  );
  assert.equal(await count("pending"), 0);
  assert.ok((await count("message")) < 20, "only what could not go on has a row");
});

test("what can never be handled, and what the schema does not read, is in quarantine and passed", async (t) => {
  const { member, applied, count, cursor, pool, schema } = await openLogs(t);
  const one = member("one", (offset) => (offset === 5 ? Promise.reject(new Error("never")) : undefined), {
    ...{ order: "skip", retry: { maxAttempts: 1, delayMs: 1 } },
    payloadSchema: {
      "~standard": {
        ...{ version: 1, vendor: "test" },
        validate: (value: unknown) =>
          [8, 9].includes((value as { offset: number }).offset)
            ? { issues: [{ message: "refused" }] }
            : { value },
      },
    } as never,
  });
  const log = await taken(one.take("log"));
  const settled = await one.deliver(log, upTo(12));
  assert.ok(settled.every(({ kind }) => kind === "ack"));
  assert.deepEqual(await applied(), [0, 1, 2, 3, 4, 6, 7, 10, 11]);
  assert.equal(await count("quarantine"), 3);
  assert.equal(await cursor(), 11);
  const { rows } = await pool.query<{ message_id: string }>(
    `select message_id from ${schema}.quarantine order by id`,
  );
  assert.deepEqual(
    rows.map((row) => row.message_id),
    ["t1/0/5", "t1/0/8", "t1/0/9"],
  );
  const two = member("two");
  const again = await taken(two.take("log"));
  await two.deliver(again, upTo(12), { previous: -1 });
  assert.equal(two.run.stats().outcomes.duplicate, 12);
  assert.equal(await count("quarantine"), 3);
});

for (const end of ["commits", "fails", "quarantines"] as const) {
  test(`an owner that is replaced while its handler runs and then ${end}: the record is applied once, and leaves nothing of the old one behind`, async (t) => {
    const { member, applied, count, cursor, pool, schema } = await openLogs(t);
    let entered = (): void => undefined;
    let go = (): void => undefined;
    const inHandler = new Promise<void>((resolve) => (entered = resolve));
    const released = new Promise<void>((resolve) => (go = resolve));
    const old = member("old", async () => {
      entered();
      await released;
      if (end === "fails") throw new Error("failed");
      return end === "quarantines" ? quarantine("no") : undefined;
    });
    const first = await taken(old.take("log"));
    const deliveries = old.deliver(first, [0, 1]);
    await inHandler;
    const fresh = member("fresh");
    const taking = taken(fresh.take("log"));
    for (let waits = 0; waits === 0;) {
      const { rows } = await pool.query(
        "select from pg_stat_activity where wait_event_type = 'Lock' and query like $1",
        [`%${schema}%log_owner%`],
      );
      waits = rows.length;
    }
    go();
    const second = await taking;
    await fresh.deliver(
      second,
      end === "commits" ? [0, 1, 2].slice(Number((second.applied ?? -1n) + 1n)) : [0, 1, 2],
    );
    const settled = await deliveries;
    if (end !== "commits")
      assert.deepEqual(
        settled.map(({ kind }) => kind),
        ["retry", "retry"],
      );
    assert.deepEqual(await applied(), [0, 1, 2]);
    assert.equal(await cursor(), 2);
    for (const table of ["message", "pending", "quarantine", "attempt"])
      assert.equal(await count(table), 0, table);
  });
}

test("the store refuses to count, to put off and to quarantine for an owner that was replaced, and for a record that was passed", async (t) => {
  const { pool, schema, count, cursor } = await openLogs(t);
  const store = postgres(pool, { schema });
  const name = { consumer: "accounting", handlerVersion: "1" };
  const ask: LogAsk = { cluster: undefined, incarnation: "t1", part: "0", begin: 0n, accept: [] };
  const old = (await store.logs.takeCursor("accounting", "log", ask)) as { epoch: string };
  const now = (await store.logs.takeCursor("accounting", "log", ask)) as { epoch: string };
  const record = { offset: 0n, previous: undefined };
  const fingerprint = { mode: "b" as const, digest: "00".repeat(32) };
  const identity = { digest: "11".repeat(16), tenant: "", producer: "log", id: "t1/0/0" };
  const body = { key: undefined, type: undefined, time: undefined, headers: {}, payload: null };
  const putOff = (epoch: string, offset = 0n, previous: bigint | undefined = undefined) =>
    store.pending.putOff(name, {
      message: { ...identity, fingerprint, ...body },
      position: { log: "log", epoch, record: { ...record, offset, previous } },
      ...{ pending: undefined, code: "handler-failed", error: "x", counts: true, park: false },
      delayAfter: () => 3_600_000,
    });
  const quarantine = (epoch: string, offset = 0n, previous: bigint | undefined = undefined) =>
    store.quarantine(name, {
      identity,
      ...{ rawIdentity: undefined, fingerprint, code: "crashed", error: "x", attempts: 1 },
      ...body,
      position: { log: "log", epoch, record: { offset, previous } },
    });
  const attempt = (epoch: string) =>
    store.recordAttempt(name, {
      ...{ ...identity, fingerprint, code: "handler-failed", error: "x" },
      position: { log: "log", epoch, record },
    });
  const lost = { code: "log-lost" };
  await assert.rejects(attempt(old.epoch), lost);
  await assert.rejects(putOff(old.epoch), lost);
  await assert.rejects(quarantine(old.epoch), lost);
  await assert.rejects(putOff(now.epoch, 5n, 4n), { code: "log-gap" });
  await assert.rejects(quarantine(now.epoch, 5n, 4n), { code: "log-gap" });
  assert.equal((await count("message")) + (await count("attempt")) + (await count("quarantine")), 0);
  assert.equal((await attempt(now.epoch)).attempts, 1);
  assert.equal((await putOff(now.epoch)).kind, "stored");
  assert.equal(await cursor(), 0);
  assert.equal((await putOff(now.epoch)).kind, "duplicate");
  assert.equal(await quarantine(now.epoch), "already-applied");
  assert.equal(await count("quarantine"), 0);
});

test("another log of the name is not taken until somebody agrees, and its owner goes on meanwhile", async (t) => {
  const { member, applied } = await openLogs(t);
  const one = member("one");
  const log = await taken(one.take("log"));
  await one.deliver(log, upTo(10));
  const two = member("two");
  const refused = await two.take("log", { incarnation: "t2" });
  assert.deepEqual(refused, { kind: "changed", known: "t1", applied: 9n, accept: "t2" });
  await one.deliver({ ...log, applied: 9n }, [10]);
  assert.equal((await two.take("log", { cluster: "other" })).kind, "changed");
  const agreed = await taken(two.take("log", { incarnation: "t2", accept: ["t2"] }));
  assert.equal(agreed.applied, -1n);
  await two.deliver(agreed, upTo(3));
  assert.deepEqual(await applied(), [...upTo(11), ...upTo(3)]);
  const still = await taken(two.take("log", { incarnation: "t2", accept: ["t2"] }));
  assert.equal(still.applied, 2n, "an agreement that stays configured holds once");
});

test("a log that lost its end is taken once somebody agrees to this very end", async (t) => {
  const { member, applied } = await openLogs(t);
  const one = member("one");
  const log = await taken(one.take("log"));
  await one.deliver(log, upTo(10));
  const { accept = "" } = await (await one.intake).markEnd!(log.position, "0", 6n);
  assert.equal(accept, "t1/0@6");
  const gone = await one.deliver({ ...log, applied: 9n }, [10]);
  assert.equal(gone[0]?.kind, "retry", "nothing is applied before");
  const two = member("two");
  assert.deepEqual(await two.take("log"), { kind: "ended", end: 6n, applied: 9n, accept });
  assert.equal((await two.take("log", { accept: ["t1", "t1/0@7", "t1/1@6"] })).kind, "ended");
  const agreed = await taken(two.take("log", { accept: [accept] }));
  assert.deepEqual([agreed.applied, agreed.incarnation], [5n, "t1@6"]);
  await two.deliver(agreed, [6, 7]);
  assert.deepEqual(await applied(), [...upTo(10), 6, 7]);
  assert.equal((await taken(two.take("log", { accept: [accept] }))).applied, 7n);
  await (
    await two.intake
  ).markEnd!((await taken(two.take("log"))).position, "0", 6n);
  assert.equal((await two.take("log", { accept: [accept] })).kind, "ended", "the second loss is another one");
});

test("store-first: records are stored once, in order, and the cursor moves with them", async (t) => {
  const { member, applied, cursor, count } = await openLogs(t);
  const one = member("one", undefined, { mode: "store-first" });
  const log = await taken(one.take("log"));
  await one.deliver(log, upTo(50), { key: () => "k" });
  assert.equal(await cursor(), 49);
  await one.deliver(log, upTo(60), { key: () => "k", previous: -1 });
  assert.equal(await cursor(), 59);
  (await one.intake).end();
  await one.run.finished;
  assert.deepEqual(await applied(), upTo(60));
  assert.equal(await count("pending"), 0);
});

test("whatever fails, whoever takes over: each record of each log is applied once, and in order where nothing failed", async (t) => {
  const { member, applied, cursor } = await openLogs(t);
  let round = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ size: fc.integer({ min: 1, max: 25 }), bad: fc.nat(30), back: fc.nat(10) }), {
        minLength: 1,
        maxLength: 3,
      }),
      async (owners) => {
        const logs = [`a${round}`, `b${round++}`];
        const failing = new Set<string>();
        let end = 0;
        for (const [i, { size, bad, back }] of owners.entries()) {
          const one = member(`owner ${i}`, (offset) => {
            if (offset !== bad || failing.has(`${i}`)) return;
            failing.add(`${i}`);
            throw new Error("once");
          });
          const from = Math.max(0, end - back);
          end = from + size > end ? from + size : end;
          await Promise.all(
            logs.map(async (log) => {
              const own = await taken(one.take(log));
              await one.deliver(own, upTo(size, from), { previous: from - 1 });
            }),
          );
          (await one.intake).end();
          await one.run.finished;
        }
        for (const log of logs) {
          const list = await applied(log);
          assert.deepEqual(
            [...list].sort((a, b) => a - b),
            upTo(end),
            log,
          );
          assert.equal(await cursor(log), end - 1);
        }
      },
    ),
    { numRuns: 8 },
  );
});
