import assert from "node:assert/strict";
import { test } from "node:test";
import postgresJs from "postgres";
import { createInbox, postgres, quarantine } from "../../src/index.ts";
import { reconcile } from "../../src/reconcile/reconcile.ts";
import { sentInbox, sentQuery } from "../../src/reconcile/sent-query.ts";
import type { SentMessage, SentSource } from "../../src/reconcile/sent.ts";
import { computeFingerprint } from "../../src/message/fingerprint.ts";
import { pgbouncerPath, startPgbouncer } from "../support/pgbouncer.ts";
import { testPool } from "../support/postgres.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";
import { hoursAgo, ledgerCase } from "./ledger-case.ts";

interface Listed {
  readonly id: string;
  readonly producer?: string;
  readonly payload?: string | null;
  readonly at?: Date;
}

/** A list in memory, in batches of two. */
function list(messages: readonly Listed[]): SentSource {
  const all: SentMessage[] = messages.map(({ id, producer = "payments", payload, at }) => ({
    ...{ tenant: "", producer, id, time: at?.getTime() },
    fingerprint: payload === undefined ? undefined : computeFingerprint("b", payload),
  }));
  return {
    name: "list",
    open: async () => ({
      async *read() {
        for (let i = 0; i < all.length; i += 2) yield all.slice(i, i + 2);
      },
      close: async () => undefined,
    }),
  };
}

const many = (count: number, prefix = "m"): { id: string }[] =>
  Array.from({ length: count }, (_, i) => ({ id: `${prefix}${i}` }));

test("the same messages on both sides differ in no bucket, with payloads, tombstones and ids of any script", async (t) => {
  const { fill, compare } = await ledgerCase(t);
  const rows = [...many(500), { id: "żółw/🐢" }, { id: 'O\'Brien \\ "x"' }, { id: "gone", payload: null }];
  await fill(rows);
  const listed = rows.map(({ id, ...rest }) => ({ id, payload: id, ...rest })).reverse();
  const { report, told } = await compare({ sent: list(listed) });
  assert.deepEqual(told, []);
  assert.deepEqual(
    [report.sent, report.applied, report.differingBuckets, report.payloads, report.producers],
    [503, 503, 0, true, ["payments"]],
  );
});

test("tells missing, extra and conflicting, and nothing of other consumers and producers", async (t) => {
  const { fill, compare } = await ledgerCase(t);
  await fill([
    ...many(300),
    { id: "unsent" },
    { id: "changed", payload: "5" },
    { id: "x", producer: "other" },
  ]);
  await fill([{ id: "lost" }], "shipping");
  const listed = [...many(300), { id: "lost" }, { id: "changed" }].map(({ id }) => ({ id, payload: id }));
  const { report, ids, told } = await compare({ sent: list(listed) });
  assert.deepEqual(ids, { missing: ["lost"], conflicting: ["changed"], extra: ["unsent"] });
  assert.deepEqual([report.sent, report.applied], [302, 300]);
  assert.ok(told.every(({ kind, appliedAt }) => (appliedAt === undefined) === (kind === "missing")));
  const { ids: byId } = await compare({ sent: list(listed.map(({ id }) => ({ id }))) });
  assert.deepEqual(byId, { missing: ["lost"], extra: ["unsent"] }, "ids alone show no conflict");
});

test("two lists whose exclusive or is the same are not the same: a copy twice, and one message less", async (t) => {
  const { fill, compare } = await ledgerCase(t);
  await fill([{ id: "a" }, { id: "b" }, { id: "c" }]);
  const copies = await compare({
    sent: list([{ id: "a" }, { id: "b" }, { id: "b" }, { id: "b" }, { id: "c" }]),
  });
  assert.deepEqual(copies.ids, {});
  assert.deepEqual([copies.report.repeated, copies.report.sent, copies.report.applied], [2, 5, 5]);
  const less = await compare({
    sent: list([{ id: "a" }, { id: "b" }, { id: "c" }, { id: "lost" }, { id: "lost" }]),
  });
  assert.deepEqual(less.ids, { missing: ["lost", "lost"] });
});

test("what waits is told apart from what is missing: pending, quarantined, discarded, purged by hand", async (t) => {
  const { pool, schema, compare } = await ledgerCase(t);
  const store = postgres(pool, { schema });
  const inbox = createInbox({ store, consumer: "accounting" });
  const message = (id: string) => ({ producer: "payments", id, payload: id });
  await inbox.process(message("done"), async () => undefined);
  for (const id of ["set-aside", "given-up", "erased"]) {
    await inbox.process(message(id), async () => quarantine("unknown account"));
  }
  const entries = await store.quarantined.list({});
  const entryOf = (id: string) => entries.find(({ messageId }) => messageId === id)!.id;
  await pool.query(
    "update quarantine set status = 'discarded', decided_at = now() where message_id = 'given-up'",
  );
  await pool.query("delete from quarantine where message_id = 'erased'");
  const sent = list(["done", "set-aside", "given-up", "erased", "never"].map((id) => ({ id, payload: id })));
  const { ids, told, report } = await compare({ sent, until: new Date(Date.now() + 60_000) });
  assert.deepEqual(ids, {
    missing: ["never"],
    quarantined: ["set-aside"],
    discarded: ["given-up"],
    unaccounted: ["erased"],
  });
  assert.equal(told.find(({ kind }) => kind === "quarantined")?.entry, entryOf("set-aside"));
  assert.equal(report.applied, 1);
});

test("a message that is stored for later is pending, not missing", async (t) => {
  const { pool, fill, compare } = await ledgerCase(t);
  await fill([{ id: "waits", at: null }]);
  await pool.query(
    `insert into pending (digest, lane, consumer, tenant, producer, message_id, headers, fingerprint, fingerprint_mode)
     select digest, 0, consumer, tenant, producer, message_id, '[]', fingerprint, fingerprint_mode from message`,
  );
  const { ids } = await compare({ sent: list([{ id: "waits" }]) });
  assert.deepEqual(ids, { pending: ["waits"] });
});

test("a span: what was sent in it is found however late it was applied, and its ends make nothing extra", async (t) => {
  const { fill, compare } = await ledgerCase(t);
  const [since, until] = [hoursAgo(5), hoursAgo(3)];
  const minutes = (date: Date, by: number): Date => new Date(date.getTime() + by * 60_000);
  await fill([
    { id: "before", at: minutes(since, 1) },
    { id: "early", at: since },
    { id: "late", at: hoursAgo(1) },
    { id: "skewed", at: minutes(until, -1) },
    { id: "unsent", at: minutes(since, 60) },
    { id: "elsewhere", at: hoursAgo(1) },
  ]);
  const sent = list([
    { id: "long ago", at: minutes(since, -60) },
    { id: "before", at: minutes(since, -1) },
    { id: "early", at: since },
    { id: "late", at: minutes(since, 10) },
    { id: "lost", at: minutes(until, -1) },
    { id: "skewed", at: minutes(until, 1) },
    { id: "next", at: until },
  ]);
  const { ids, report } = await compare({ sent, since, until });
  assert.deepEqual(ids, { missing: ["lost"], extra: ["unsent"] });
  assert.deepEqual([report.sent, report.applied, report.atEdge], [3, 2, 0]);
});

test("a message that was sent a moment ago is recent, not missing; one applied a moment ago is not extra", async (t) => {
  const { fill, compare } = await ledgerCase(t);
  await fill([{ id: "a" }, { id: "just applied", at: new Date() }]);
  const sent = list([
    { id: "a", at: hoursAgo(1) },
    { id: "just sent", at: new Date() },
  ]);
  const { ids, report } = await compare({ sent, until: new Date(Date.now() + 3_600_000) });
  assert.deepEqual(ids, { recent: ["just sent"] });
  assert.equal(report.atEdge, 1);
});

test("without times, what was applied near the span's ends is counted and not called extra", async (t) => {
  const { fill, compare } = await ledgerCase(t);
  const [since, until] = [hoursAgo(5), hoursAgo(3)];
  await fill([
    { id: "start", at: since },
    { id: "end", at: new Date(until.getTime() - 1) },
    { id: "middle", at: hoursAgo(4) },
  ]);
  const { ids, report } = await compare({ sent: list([{ id: "start" }]), since, until });
  assert.deepEqual([ids, report.atEdge], [{ extra: ["middle"] }, 1]);
});

test("payloads that the two sides fingerprint in different ways are unchecked, not in conflict", async (t) => {
  const { fill, compare } = await ledgerCase(t);
  await fill([{ id: "1", mode: "j" }]);
  const { ids, report } = await compare({ sent: list([{ id: "1", payload: "1" }]) });
  assert.deepEqual([ids, report.applied], [{ unchecked: ["1"] }, 1]);
});

test("a list that differs in more than fits in memory at once is read again for each part", async (t) => {
  const { fill, compare } = await ledgerCase(t);
  await fill([...many(40, "extra"), ...many(30, "both")]);
  const listed = [...many(50, "lost"), ...many(30, "both")];
  for (const maxDigests of [1, 7, 1_000]) {
    const { ids, report } = await compare({ sent: list(listed), maxDigests });
    assert.deepEqual([ids["missing"]?.length, ids["extra"]?.length, report.applied], [50, 40, 30]);
  }
});

test("an empty list needs to be told whose messages would be extra", async (t) => {
  const { fill, compare } = await ledgerCase(t);
  await fill([{ id: "a" }]);
  await assert.rejects(compare({ sent: list([]) }), { code: "invalid-option" });
  const { ids } = await compare({ sent: list([]), producers: ["payments"] });
  assert.deepEqual(ids, { extra: ["a"] });
});

test("a list that has payloads for some messages only is refused: a conflict would go unseen", async (t) => {
  const { compare } = await ledgerCase(t);
  await assert.rejects(compare({ sent: list([{ id: "a", payload: "a" }, { id: "b" }]) }), {
    code: "sent-refused",
  });
});

test("a query over any table: bigint ids keep their digits, its range uses $1 and $2, bytes and texts are compared", async (t) => {
  const { pool, fill, compare } = await ledgerCase(t);
  const since = hoursAgo(5);
  await fill([
    { id: "9007199254740993", payload: "a" },
    { id: "9007199254740995", payload: "b" },
  ]);
  await pool.query(
    "create table sent_message (no bigint primary key, body text, sent_at timestamp not null)",
  );
  await pool.query(
    `insert into sent_message select no, body, (now() at time zone 'utc') - interval '1 hour' from
       (values (9007199254740993, 'a'), (9007199254740995, 'B'), (9007199254740997, 'c')) as v (no, body)`,
  );
  const query = (body: string) =>
    `select no as id, 'payments' as producer, ${body}, sent_at at time zone 'utc' as time
       from sent_message where sent_at at time zone 'utc' >= $1 and sent_at at time zone 'utc' < $2 -- the range
     ;`;
  for (const body of [
    "body as payload",
    "convert_to(body, 'UTF8') as payload_bytes",
    "encode(sha256(body::bytea), 'hex') as fingerprint",
  ]) {
    const { ids, report } = await compare({ sent: sentQuery(pool, query(body)), since });
    assert.deepEqual(ids, { conflicting: ["9007199254740995"], missing: ["9007199254740997"] }, body);
    assert.equal(report.sent, 3);
  }
});

for (const [what, query, said] of [
  ["without an id", "select 1 as no", /row 1: The message has no id/],
  ["without a producer", "select 'a' as id", /row 1: The message has no producer/],
  [
    "with a time without zone",
    "select 'a' as id, 'p' as producer, now()::timestamp as time",
    /row 1: The time ".*" is no RFC 3339/,
  ],
  [
    "with an empty id further down",
    "select case n when 6007 then '' else n::text end as id, 'p' as producer from generate_series(1, 7000) n",
    /row 6007/,
  ],
] as const) {
  test(`a query ${what} is refused by its row`, async (t) => {
    const { pool, compare } = await ledgerCase(t);
    await assert.rejects(compare({ sent: sentQuery(pool, query) }), { code: "sent-refused", message: said });
  });
}

test("a query can write nothing", async (t) => {
  const { pool, schema, compare } = await ledgerCase(t);
  await pool.query("create table victim (n int)");
  for (const query of [
    "select 'a' as id) as x), d as (delete from victim",
    "with d as (insert into victim values (1) returning n) select n::text as id from d",
    "select 'a' as id, 'p' as producer) as sent) as rows; commit; insert into victim values (1); --",
    `select 'a' as id, 'p' as producer, setval('${schema}.arrival', 1) as x`,
  ]) {
    await assert.rejects(compare({ sent: sentQuery(pool, query) }));
  }
  assert.equal((await pool.query("select from victim")).rowCount, 0);
});

test("one inbox against another, in the order of what each applied", async (t) => {
  const { pool, schema, fill, compare } = await ledgerCase(t);
  await fill([...many(100), { id: "only here" }, { id: "differs", payload: "1" }]);
  await fill([...many(100), { id: "only there" }, { id: "differs", payload: "2" }], "projection");
  const sent = sentInbox(pool, { schema, consumer: "accounting" });
  const { ids, report } = await compare({ consumer: "projection", sent });
  assert.deepEqual(ids, { missing: ["only here"], extra: ["only there"], conflicting: ["differs"] });
  assert.deepEqual(
    [report.consumer, report.sentBy, report.payloads],
    ["projection", "inbox of accounting", true],
  );
});

test("works through postgres.js as well", async (t) => {
  const { url, schema, fill } = await ledgerCase(t);
  await fill([...many(50), { id: "unsent" }]);
  const sql = postgresJs(url, { max: 2, onnotice: () => undefined });
  try {
    const kinds: string[] = [];
    const query = `select 'm' || n as id, 'payments' as producer, 'm' || n as payload from generate_series(0, 50) n`;
    await reconcile(sql, {
      ...{ consumer: "accounting", schema, sent: sentQuery(sql, query) },
      onDifference: ({ kind, id }) => void kinds.push(`${kind} ${id}`),
    });
    assert.deepEqual(kinds, ["missing m50", "extra unsent"]);
  } finally {
    await sql.end();
  }
});

test("works through a pooler in transaction mode with two server connections", async (t) => {
  if (!requireOrSkip(t, pgbouncerPath() !== undefined, "pgbouncer is not installed")) return;
  const { url, schema, fill } = await ledgerCase(t);
  await fill([...many(12_000), { id: "unsent" }]);
  const pool = await testPool(t, { url: await startPgbouncer(t, url), max: 4 });
  const query =
    "select 'm' || n as id, 'payments' as producer, 'm' || n as payload from generate_series(0, 12000) n";
  for (let i = 0; i < 2; i++) {
    const { differences, applied } = await reconcile(pool, {
      ...{ consumer: "accounting", schema, sent: sentQuery(pool, query), maxDigests: 2 },
    });
    assert.deepEqual([differences.missing, differences.extra, applied], [1, 1, 12_000]);
  }
});

test("what the listener throws ends the comparison, and every connection goes back", async (t) => {
  const { pool, fill, compare, schema } = await ledgerCase(t);
  await fill(many(20_000));
  const query = "select n::text as id, 'payments' as producer from generate_series(1, 20000) n";
  await assert.rejects(
    reconcile(pool, {
      ...{ consumer: "accounting", schema, sent: sentQuery(pool, query) },
      onDifference: () => {
        throw new Error("the disk is full");
      },
    }),
    /the disk is full/,
  );
  assert.equal(pool.totalCount, pool.idleCount);
  const { report } = await compare({ sent: sentQuery(pool, query) });
  assert.deepEqual([report.differences.missing, report.differences.extra], [20_000, 20_000]);
});
