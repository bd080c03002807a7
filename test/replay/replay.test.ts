import assert from "node:assert/strict";
import test from "node:test";
import { InboxError } from "../../src/errors.ts";
import type { ReplayMessageHandler } from "../../src/replay/handler-effects.ts";
import { operationId } from "../../src/replay/policy.ts";
import { planReplay } from "../../src/replay/plan.ts";
import { replayStored } from "../../src/replay/replay-source.ts";
import { replayTables } from "../../src/replay/replay-tables.ts";
import { driverFor } from "../../src/store/postgres/drivers/detect.ts";
import { batch } from "../../src/inbox/handler.ts";
import { effects, messageOf, payments, record, testReplay, why } from "./support.ts";

const code = (expected: string) => (error: unknown) => error instanceof InboxError && error.code === expected;

const rebuild = { kind: "rebuild", of: "accounting", consumer: "view" } as const;
const correct = { kind: "compensate", of: "accounting", migration: "fix-1" } as const;

test("a rebuild applies each message under its own name, and leaves the original as it is", async (t) => {
  const { inbox, lines, replay, column, pool } = await testReplay(t);
  const all = payments(50);
  await inbox.processBatch(all.map(messageOf), record("original") as never);
  const before = await column("select (m.*)::text from message m order by 1");
  const report = await replay({ policy: rebuild, source: lines("all.ndjson", all) }).finished;
  assert.equal(report.counts.applied, 50);
  assert.equal(report.ended, "done");
  const done = await column<string>(
    "select consumer || ' ' || count(*) from done group by consumer order by 1",
  );
  assert.deepEqual(done, ["original 50", "rebuild 50"]);
  const after = await column("select (m.*)::text from message m where consumer = 'accounting' order by 1");
  assert.deepEqual(after, before);
  const { rows } = await pool.query(
    "select policy, of_consumer, decided_by, reason, ended, counts->>'applied' as n from replay",
  );
  assert.deepEqual(rows, [
    {
      policy: "rebuild",
      of_consumer: "accounting",
      decided_by: "ann",
      reason: why.why,
      ended: "done",
      n: "50",
    },
  ]);
});

test("a replay that is run again applies nothing again", async (t) => {
  const { lines, replay, column } = await testReplay(t);
  const source = lines("all.ndjson", payments(20));
  await replay({ policy: rebuild, source }).finished;
  const again = await replay({ policy: rebuild, source }).finished;
  assert.deepEqual([again.counts.applied, again.counts.duplicates, again.resumes], [0, 20, undefined]);
  assert.deepEqual(await column("select count(*)::int from done"), [20]);
});

test("a replay is refused without a policy, and without who and why", async (t) => {
  const { lines, replay, column } = await testReplay(t);
  const source = lines("all.ndjson", payments(1));
  assert.throws(() => replay({ policy: undefined as never, source }), code("replay-refused"));
  assert.throws(() => replay({ policy: rebuild, source, why: " " }), code("decision-needs"));
  assert.throws(() => replay({ policy: rebuild, source, by: "" }), code("decision-needs"));
  assert.deepEqual(await column("select count(*)::int from replay"), [0]);
});

test("a rebuild under the name of somebody who handles messages by himself is refused", async (t) => {
  const { inboxWith, lines, replay, column } = await testReplay(t);
  await inboxWith({ consumer: "billing" }).process(messageOf(payments(1)[0]!), record("billing") as never);
  const refused = replay({
    policy: { kind: "rebuild", of: "accounting", consumer: "billing" },
    source: lines("all.ndjson", payments(5)),
  }).finished;
  await assert.rejects(refused, code("replay-refused"));
  // Nor under the name of a replay of another kind: its messages would all be duplicates.
  const view = { kind: "rebuild", of: "accounting", consumer: "billing#fix" } as const;
  await replay({ policy: view, source: lines("none.ndjson", payments(1)), handler: () => undefined })
    .finished;
  const fix = { kind: "compensate", of: "billing", migration: "fix" } as const;
  await assert.rejects(
    replay({ policy: fix, source: lines("all.ndjson", payments(5)) }).finished,
    code("replay-refused"),
  );
  assert.deepEqual(await column("select count(*)::int from done"), [1]);
  assert.deepEqual(await column("select policy from replay"), ["rebuild"]);
});

test("a handler that asks for an effect ends the replay, even if it catches the error, and commits nothing of it", async (t) => {
  const { pool, lines, replay, column } = await testReplay(t);
  const source = lines("all.ndjson", payments(30));
  const careless: ReplayMessageHandler = async ({ id }, { tx, outbox }) => {
    await tx.query("insert into done values ('rebuild', $1)", [id]);
    if (id !== "p-7") return;
    try {
      outbox.send({ id: `mail-${id}`, destination: "mail", payload: "{}" });
    } catch {
      // As a careless handler would.
    }
  };
  await assert.rejects(
    replay({ policy: rebuild, source, handler: careless }).finished,
    code("effect-refused"),
  );
  assert.deepEqual(await column("select count(*)::int from done where message_id = 'p-7'"), [0]);
  assert.equal(await effects(pool), 0);
  assert.deepEqual(await column("select count(*)::int from attempt"), [0], "no attempt was counted");
  assert.deepEqual(await column("select ended from replay"), ["failed"]);
  assert.match((await column<string>("select error from replay"))[0]!, /mail-p-7.*sends no effects/s);

  const went = await replay({
    policy: { ...rebuild, effects: "drop" },
    source,
    handler: async ({ id }, { tx, outbox }) => {
      await tx.query("insert into done values ('rebuild', $1)", [id]);
      outbox.send({ destination: "mail", payload: "{}" });
    },
  }).finished;
  assert.equal(went.ended, "done");
  assert.ok(went.counts.effectsDropped >= went.counts.applied && went.counts.applied > 0);
  assert.deepEqual(await column("select count(*)::int from done"), [30]);
  assert.deepEqual(await column("select count(distinct message_id)::int from done"), [30]);
  assert.equal(await effects(pool), 0);
});

test("a correction takes what the original has applied, as it was applied, and tells what it leaves out", async (t) => {
  const { inbox, inboxWith, lines, replay, column } = await testReplay(t);
  const all = payments(20);
  await inboxWith({ handlerVersion: "2" }).processBatch(
    all.slice(0, 10).map(messageOf),
    record("o") as never,
  );
  await inboxWith({ handlerVersion: "3" }).processBatch(
    all.slice(10, 14).map(messageOf),
    record("o") as never,
  );
  await inbox.accept(messageOf(all[14]!));
  // The second one came to the file with another amount than was applied.
  const source = lines(
    "all.ndjson",
    all.map((one, at) => (at === 1 ? { ...one, amount: 999 } : one)),
  );
  const names: string[] = [];
  const report = await replay({
    policy: { ...correct, appliedBy: ["2"] },
    source,
    handler: async (message, { tx, operationId: idOf }) => {
      names.push(`${message.id} ${idOf(message)}`);
      await tx.query("insert into done values ('fix', $1)", [message.id]);
    },
  }).finished;
  assert.equal(report.consumer, "accounting#fix-1");
  assert.deepEqual(report.counts.skipped, {
    ...{ unknown: 5, stored: 1, "other-payload": 1, "other-version": 4 },
  });
  assert.equal(report.counts.applied, 9);
  const corrected = await column<string>("select message_id from done where consumer = 'fix' order by 1");
  assert.deepEqual(corrected, ["p-0", "p-2", "p-3", "p-4", "p-5", "p-6", "p-7", "p-8", "p-9"]);
  for (const name of names) {
    const id = name.split(" ")[0]!;
    assert.equal(name, `${id} ${operationId(correct, { tenant: "", producer: "shop", id })}`);
  }
  assert.deepEqual(
    await column(
      "select count(*)::int from message where consumer = 'accounting' and processed_at is not null",
    ),
    [14],
    "the original's identities are as they were",
  );
});

test("what a correction left out is looked at again by the next run of it", async (t) => {
  const { inbox, lines, replay, column } = await testReplay(t);
  const all = payments(6);
  await inbox.processBatch(all.slice(0, 3).map(messageOf), record("o") as never);
  const source = lines("all.ndjson", all);
  await replay({ policy: correct, source }).finished;
  await inbox.processBatch(all.slice(3).map(messageOf), record("o") as never);
  const { counts } = await replay({ policy: correct, source }).finished;
  assert.deepEqual([counts.applied, counts.duplicates], [3, 3]);
  assert.deepEqual(await column("select count(*)::int from done where consumer = 'compensate'"), [6]);
});

test("a correction that two operators run at once is one transition for each message", async (t) => {
  const { pool, inbox, lines, replay, column } = await testReplay(t);
  const all = payments(400);
  await inbox.processBatch(
    all.map(messageOf),
    batch(() => undefined),
  );
  const source = lines("all.ndjson", all);
  const policy = { ...correct, effects: "send" } as const;
  const handler: ReplayMessageHandler = async (message, { tx, outbox }) => {
    await tx.query("insert into done values ('fix', $1)", [message.id]);
    outbox.send({ destination: "refund", payload: message.id });
  };
  const runs = ["ann", "bob"].map((by) => replay({ policy, source, handler, by }).finished);
  const reports = await Promise.all(runs);
  const sum = (name: "applied" | "duplicates"): number =>
    reports.reduce((total, { counts }) => total + counts[name], 0);
  assert.equal(sum("applied"), 400);
  assert.equal(sum("applied") + sum("duplicates"), 800);
  assert.deepEqual(await column("select count(*)::int from done"), [400]);
  assert.deepEqual(await column("select count(distinct message_id)::int from done"), [400]);
  assert.equal(await effects(pool), 400);
  assert.deepEqual(await column("select decided_by from replay order by 1"), ["ann", "bob"]);
});

test("the plan tells what would run, what is applied by which version, and what has no body, and writes nothing", async (t) => {
  const { inboxWith, lines, replay, pool, schema, column } = await testReplay(t);
  const all = payments(30);
  await inboxWith({ handlerVersion: "2" }).processBatch(
    all.slice(0, 20).map(messageOf),
    record("o") as never,
  );
  await inboxWith({ handlerVersion: "3" }).processBatch(
    payments(4, 100).map(messageOf),
    record("o") as never,
  );
  await replay({
    policy: rebuild,
    source: lines("first.ndjson", all.slice(0, 5)),
    inbox: { handlerVersion: "7" },
  }).finished;
  const source = lines("all.ndjson", [...all, all[3]!, { ...all[4]!, amount: 999 }]);
  const before = await column("select (m.*)::text from message m order by 1");
  const { policy: _, source: __, ...plan } = await planReplay(pool, { policy: rebuild, source, schema });
  assert.deepEqual(plan, {
    ...{ consumer: "view", of: "accounting", effects: "refuse", wouldRun: 25, applied: { 7: 5 }, stored: 0 },
    ...{ conflicting: 0, unreadable: 0, late: 0, copies: 2 },
    skipped: { unknown: 0, stored: 0, "other-payload": 0, "other-version": 0 },
    original: {
      applied: { 2: 20 },
      unknown: 10,
      stored: 0,
      otherPayload: 0,
      withoutBody: 4,
      horizon: undefined,
      beyondHorizon: 0,
    },
  });
  const fix = await planReplay(pool, { policy: { ...correct, appliedBy: ["2"] }, source, schema });
  assert.deepEqual([fix.wouldRun, fix.skipped.unknown], [20, 10]);
  assert.deepEqual(await column("select (m.*)::text from message m order by 1"), before);
  const report = await replay({ policy: rebuild, source }).finished;
  assert.equal(report.counts.applied, plan.wouldRun, "and that is what then runs");
});

test("what lies beyond the original's horizon is told: a rebuild takes it, a correction does not", async (t) => {
  const { inbox, inboxWith, store, replay, pool, schema, column } = await testReplay(t);
  const sent = (ms: number): Date => new Date(Date.now() - ms);
  const all = payments(9).map((one, at) => ({
    ...messageOf(one),
    time: sent(at < 4 ? 7_200_000 : at < 6 ? 60_000 : 5_000),
  }));
  await inboxWith({ consumer: "archive" }).accept(all);
  await inbox.processBatch(all.slice(4), record("o") as never);
  await store.retention.setWindow({ consumer: "accounting" }, 3_600_000);
  await store.retention.advance({ consumer: "accounting" }, { skewMs: 0 });
  const source = replayStored({ store, consumer: "archive" });
  const planned = await planReplay(pool, { policy: rebuild, source, schema });
  assert.deepEqual([planned.wouldRun, planned.late], [9, 0]);
  assert.deepEqual([planned.original?.unknown, planned.original?.beyondHorizon], [4, 4]);
  const [horizon] = await column<Date>("select horizon from retention where consumer = 'accounting'");
  assert.deepEqual(planned.original?.horizon, horizon);
  const corrected = await planReplay(pool, { policy: correct, source, schema });
  assert.deepEqual([corrected.wouldRun, corrected.skipped.unknown], [5, 4]);
  assert.equal((await replay({ policy: rebuild, source }).finished).counts.applied, 9);
  assert.equal((await replay({ policy: correct, source }).finished).counts.applied, 5);

  // What was replayed may be forgotten in its turn, and then it is late under that name, too.
  await store.retention.setWindow({ consumer: "view" }, 3_600_000);
  await store.retention.advance({ consumer: "view" }, { skewMs: 0 });
  await pool.query("delete from message where consumer = 'view' and message_id in ('p-0', 'p-1', 'p-8')");
  const again = await planReplay(pool, { policy: rebuild, source, schema });
  assert.deepEqual([again.wouldRun, again.late], [1, 2]);
  const { counts } = await replay({ policy: rebuild, source }).finished;
  assert.deepEqual([counts.applied, counts.late, counts.duplicates], [1, 2, 6]);
});

test("bodies that another inbox keeps are replayed from there: pending in its order, given back ones as repaired", async (t) => {
  const { inboxWith, store, replay, column } = await testReplay(t);
  const archive = inboxWith({ consumer: "archive" });
  await archive.accept(payments(600).map(messageOf));
  const source = replayStored({ store, consumer: "archive" });
  const seen: string[] = [];
  const handler: ReplayMessageHandler = ({ id }) => void seen.push(id);
  const { counts } = await replay({ policy: rebuild, source, handler, inbox: { lanes: 1 } }).finished;
  assert.equal(counts.applied, 600);
  assert.deepEqual(seen.filter((id) => Number(id.slice(2)) % 7 === 0).slice(0, 3), ["p-0", "p-7", "p-14"]);
  assert.deepEqual(await column("select count(*)::int from pending where consumer = 'archive'"), [600]);

  const failing = inboxWith({ consumer: "failing" });
  for (const id of ["q-1", "q-2", "q-3"])
    await failing.process({ producer: "shop", id, payload: "{}" }, async () => {
      throw Object.assign(new Error("never"), { [Symbol.for("transactional-inbox.permanent")]: true });
    });
  const [third, second, first] = await store.quarantined.list({ consumer: "failing" });
  await store.quarantined.decide("retry", first!.id, why);
  const bodies: string[] = [];
  const again = replay({
    policy: { ...rebuild, consumer: "view-2" },
    source: replayStored({ store, consumer: "failing", include: ["retried", "open"] }),
    handler: (message) => void bodies.push(`${message.id} ${message.text()}`),
  });
  assert.equal((await again.finished).counts.applied, 3);
  assert.deepEqual(bodies.sort(), ["q-1 {}", "q-2 {}", "q-3 {}"]);
  assert.ok(second !== undefined && third !== undefined);
});

test("no more is handled in a second than was said, measured by the database", async (t) => {
  const { lines, replay, column, pool } = await testReplay(t);
  await pool.query("create table at (id text, time timestamptz default clock_timestamp())");
  await replay({
    policy: rebuild,
    source: lines("all.ndjson", payments(120)),
    messagesPerSecond: 60,
    handler: async ({ id }, { tx }) => void (await tx.query("insert into at (id) values ($1)", [id])),
  }).finished;
  // 120 messages at 60 a second take two seconds, less what may be handed over at once at either end.
  const [took] = await column<number>("select extract(epoch from max(time) - min(time))::float8 from at");
  assert.ok(took! > 1.5, `took ${took} s`);
  const [most] = await column<number>(
    "select max(n)::int from (select count(*) over (order by time range between current row and interval '1 second' following) as n from at) w",
  );
  assert.ok(most! <= 60 + 20, `${most} in one second`);
});

test("a replay that is stopped goes on where it was", async (t) => {
  const { lines, replay, column, pool, schema } = await testReplay(t);
  const source = lines("all.ndjson", payments(300));
  let seen = 0;
  const first = replay({
    policy: rebuild,
    source,
    messagesPerSecond: 2_000,
    handler: async ({ id }, { tx }) => {
      await tx.query("insert into done values ('rebuild', $1)", [id]);
      if (++seen === 100) void first.stop();
    },
  });
  const report = await first.finished;
  assert.equal(report.ended, "stopped");
  assert.ok(report.counts.applied >= 100 && report.counts.applied < 300);
  const second = await replay({ policy: rebuild, source }).finished;
  assert.equal(second.resumes, report.id);
  assert.equal(second.counts.applied, 300 - report.counts.applied);
  assert.ok(second.counts.duplicates < report.counts.applied, "most of what was done is not read again");
  assert.deepEqual(await column("select count(*)::int from done"), [300]);
  const rows = await replayTables(driverFor(pool), schema, 5_000).list("view", 10);
  assert.deepEqual(
    rows.map(({ ended, resumes }) => [ended, resumes]),
    [
      ["done", report.id],
      ["stopped", undefined],
    ],
  );
});
