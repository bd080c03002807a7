import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type pg from "pg";
import { createInbox, postgres, quarantine } from "../../src/index.ts";
import { createQuarantine } from "../../src/quarantine/quarantine.ts";
import { needsLook } from "../../src/cli/retention-status-output.ts";
import type { Sweep } from "../../src/retention/retention.ts";
import { createDuty } from "../../src/retention/sweep.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { hoursAgo } from "../reconcile/ledger-case.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { ownServer, testPool } from "../support/postgres.ts";
import { caughtUp, cleanupCase, hour, stoodStill } from "./cleanup-case.ts";

const old = (count: number): { id: string; at: Date }[] =>
  Array.from({ length: count }, () => ({ id: randomUUID(), at: hoursAgo(48) }));

test("forgets what was applied before the window, with its answers and attempts, and nothing else", async (t) => {
  const { pool, fill, cleanup, ids } = await cleanupCase(t);
  await fill([
    ...old(3_000),
    { id: "young", at: hoursAgo(23) },
    { id: "stored", at: null },
    { id: "answered", at: hoursAgo(30) },
  ]);
  await pool.query(
    `insert into answer (digest, consumer, request, status, headers, body) select digest, consumer, '', 200, '{}', '' from message where message_id in ('answered', 'young')`,
  );
  await pool.query(
    `insert into attempt (digest, consumer, tenant, producer, message_id, code, error, handler_version)
     select digest, consumer, tenant, producer, message_id, 'handler-failed', '', '' from message where message_id in ('answered', 'stored')`,
  );
  const swept = await (await cleanup()).once();
  assert.deepEqual([swept.ended, swept.identities], ["done", 3_001]);
  assert.ok(swept.batches > 1, "in more than one batch");
  assert.deepEqual(await ids(), ["stored", "young"]);
  assert.equal((await pool.query("select from answer")).rowCount, 1);
  assert.deepEqual((await pool.query("select message_id from attempt")).rows, [{ message_id: "stored" }]);
  assert.equal((await (await cleanup()).once()).identities, 0);
});

test("moves the horizon before it deletes, later by the skew of clocks", async (t) => {
  const { pool, fill, cleanup } = await cleanupCase(t);
  await fill(old(10));
  await (await cleanup({ skewMs: hour })).once();
  const { rows } = await pool.query<{ forgotten: number; skew: number }>(
    `select extract(epoch from now() - forgotten_to)::float8 / 3600 as forgotten,
            extract(epoch from horizon - forgotten_to)::float8 as skew from retention`,
  );
  assert.ok(Math.abs(rows[0]!.forgotten - 24) < 0.1, `${rows[0]!.forgotten}`);
  assert.equal(rows[0]!.skew, 3_600);
});

test("without a window, and for consumers without one, nothing is ever forgotten", async (t) => {
  const { fill, cleanup, count } = await cleanupCase(t);
  await fill(old(10));
  await fill(old(10), "shipping");
  const none = await (await cleanup({ windowsMs: {} })).once();
  assert.deepEqual([none.ended, none.identities, await count()], ["done", 0, 20]);
  assert.equal((await (await cleanup()).once()).identities, 10);
  assert.equal(await count(), 10);
});

test("a source that stands still, or that never caught up, keeps everything of its consumer", async (t) => {
  const { pool, fill, cleanup, count } = await cleanupCase(t);
  await fill(old(10));
  await pool.query("update source_clock set advanced_at = now() - interval '41 minutes'");
  const standing = await (await cleanup()).once();
  assert.deepEqual(standing.consumers[0]?.waitsFor, ["orders"]);
  await pool.query("update source_clock set advanced_at = now()");
  await pool.query(
    "insert into source_clock (consumer, source, every_ms) values ('accounting', 'refunds', 15000)",
  );
  const never = await (await cleanup()).once();
  assert.deepEqual(never.consumers[0]?.waitsFor, ["refunds"]);
  assert.equal(await count(), 10);
  const { rows } = await pool.query("select from retention where forgotten_to > '-infinity'");
  assert.equal(rows.length, 0, "no horizon moved");
});

test("a consumer of which no source is known keeps everything", async (t) => {
  const { pool, fill, cleanup, count } = await cleanupCase(t);
  await fill(old(10));
  await pool.query("delete from source_clock");
  const swept = await (await cleanup()).once();
  assert.deepEqual([swept.consumers[0]?.sources, swept.identities, await count()], [0, 0, 10]);
});

test("the time in which a source stood still does not count as age", async (t) => {
  const { pool, fill, cleanup, ids } = await cleanupCase(t);
  await stoodStill(pool, 20, 10);
  // Not within the window any more: 24 hours of progress lie behind 34 hours ago.
  await stoodStill(pool, 60, 36);
  await fill([
    { id: "33 hours", at: hoursAgo(33) },
    { id: "35 hours", at: hoursAgo(35) },
  ]);
  await (await cleanup()).once();
  assert.deepEqual(await ids(), ["33 hours"]);
  await stoodStill(pool, 9, 7);
  await pool.query("truncate ledger_stretch");
  await fill([
    { id: "37 hours", at: hoursAgo(37) },
    { id: "61 hours", at: hoursAgo(61) },
  ]);
  // 24 hours of progress now end at 36 hours ago, where an older stop begins; forgetting never goes back.
  await (await cleanup()).once();
  assert.deepEqual(await ids(), ["33 hours"]);
});

test("nothing is known of the time before a source was first caught up", async (t) => {
  const { pool, fill, cleanup, count } = await cleanupCase(t);
  await pool.query("update source_clock set since = now() - interval '23 hours'");
  await fill(old(10));
  await (await cleanup()).once();
  assert.equal(await count(), 10);
  await pool.query("update source_clock set since = now() - interval '25 hours'");
  await (await cleanup()).once();
  assert.equal(await count(), 0);
});

test("the slowest of two sources decides", async (t) => {
  const { pool, fill, cleanup, ids } = await cleanupCase(t);
  await caughtUp(pool, { source: "refunds" });
  await pool.query(
    "update source_clock set caught_up_at = now() - interval '5 hours' where source = 'refunds'",
  );
  await fill([
    { id: "28 hours", at: hoursAgo(28) },
    { id: "30 hours", at: hoursAgo(30) },
  ]);
  await (await cleanup()).once();
  assert.deepEqual(await ids(), ["28 hours"]);
});

test("a producer with a window of its own keeps it, shorter or longer than its consumer's", async (t) => {
  const { pool, schema, fill, cleanup, ids } = await cleanupCase(t);
  const { retention } = postgres(pool, { schema });
  await retention.setWindow({ consumer: "accounting", producer: "partner" }, 72 * hour);
  await retention.setWindow({ consumer: "accounting", producer: "clicks" }, 2 * hour);
  await fill([
    { id: "partner, 48", producer: "partner", at: hoursAgo(48) },
    { id: "partner, 80", producer: "partner", at: hoursAgo(80) },
    { id: "clicks, 3", producer: "clicks", at: hoursAgo(3) },
    { id: "clicks, 1", producer: "clicks", at: hoursAgo(1) },
    { id: "others, 48", at: hoursAgo(48) },
    { id: "others, 3", at: hoursAgo(3) },
  ]);
  await (await cleanup()).once();
  assert.deepEqual(await ids(), ["clicks, 1", "others, 3", "partner, 48"]);
});

test("what is in quarantine keeps its identity: rejected, and in conflict with what was applied", async (t) => {
  const { pool, schema, cleanup, ids } = await cleanupCase(t);
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  const message = (id: string, payload = id) => ({ producer: "payments", id, payload });
  await inbox.process(message("rejected"), async () => quarantine("unknown account"));
  for (const id of ["conflict", "decided", "plain"]) await inbox.process(message(id), async () => undefined);
  for (const id of ["conflict", "decided"])
    await inbox.process(message(id, "changed"), async () => undefined);
  await pool.query(
    "update quarantine set status = 'discarded', decided_at = now() where message_id = 'decided'",
  );
  await inbox.accept(message("pending"));
  await pool.query("update message set processed_at = processed_at - interval '2 days'");
  await (await cleanup()).once();
  assert.deepEqual(await ids(), ["conflict", "pending", "rejected"]);
});

test("what was discarded a window ago is forgotten, and attempts of what never came to be; once a day", async (t) => {
  const { pool, schema, cleanup, ids } = await cleanupCase(t);
  const store = postgres(pool, { schema });
  const inbox = createInbox({ store, consumer: "accounting" });
  const desk = createQuarantine({ store });
  for (const id of ["over", "lately", "open", "twice"]) {
    await inbox.process({ producer: "shop", id, payload: id }, () => quarantine("no such account"));
  }
  // Of this one a second body waits.
  await inbox.process({ producer: "shop", id: "twice", payload: "other" }, () => undefined);
  const decider = { by: "ann", why: "it was a test" };
  for (const { id, messageId, code } of await desk.list()) {
    if (messageId !== "open" && code !== "payload-conflict") await desk.discard(id, decider);
  }
  await pool.query(
    "update quarantine set decided_at = now() - interval '25 hours' where message_id in ('over', 'twice') and status = 'discarded'",
  );
  await pool.query(
    `insert into attempt (digest, consumer, tenant, producer, message_id, code, error, handler_version, failed_at)
     select gen_random_uuid(), 'accounting', '', 'shop', 'never-' || hours, 'handler-failed', '', '', now() - hours * interval '1 hour'
       from unnest(array[1, 25]) as hours`,
  );
  const worker = await cleanup();
  assert.equal((await worker.once()).strays, 2);
  assert.deepEqual(await ids(), ["lately", "open", "twice"]);
  assert.deepEqual((await pool.query("select message_id from attempt")).rows, [{ message_id: "never-1" }]);
  assert.equal((await desk.list({ status: "discarded" })).length, 3, "entries stay until they are purged");
  await pool.query("update attempt set failed_at = now() - interval '25 hours'");
  // A midnight may lie between.
  await pool.query("update cleanup set finished_at = clock_timestamp() + interval '1 second'");
  assert.equal((await worker.once()).strays, 0, "not twice a day");
  await pool.query("update cleanup set finished_at = finished_at - interval '1 day'");
  assert.equal((await worker.once()).strays, 1);
});

test("eight workers at once beside claims: one works, none deadlocks, all that is old goes", async (t) => {
  const { pool, schema, fill, cleanup, count } = await cleanupCase(t);
  await fill(old(20_000));
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  let sweeping = true;
  const claims = (async () => {
    let applied = 0;
    while (sweeping) {
      const messages = Array.from({ length: 20 }, () => ({
        producer: "payments",
        id: randomUUID(),
        payload: "x",
      }));
      const outcomes = await inbox.processBatch([...messages, ...messages], () => []);
      applied += outcomes.filter(({ outcome }) => outcome === "applied").length;
    }
    return applied;
  })();
  const workers = await Promise.all(Array.from({ length: 8 }, () => cleanup({ dutyPercent: 60 })));
  const all = await Promise.all(workers.map((worker) => worker.once()));
  sweeping = false;
  const applied = await claims;
  assert.deepEqual(
    all.map(({ ended }) => ended).sort(),
    [...Array.from({ length: 7 }, () => "busy"), "done"].sort(),
  );
  assert.equal(
    all.reduce((sum, { identities }) => sum + identities, 0),
    20_000,
  );
  assert.equal(await count(), applied);
});

test("a batch gives way to whoever holds a lock, and goes on when it is free", async (t) => {
  const { pool, fill, cleanup } = await cleanupCase(t);
  await fill(old(200));
  const holder = await pool.connect();
  try {
    await holder.query("begin");
    await holder.query("select from message limit 1 for update");
    const controller = new AbortController();
    const given = (await cleanup({ lockTimeoutMs: 20 })).once({ signal: controller.signal });
    await untilGaveWay(pool);
    controller.abort();
    const { ended, gaveWay, identities } = await given;
    assert.deepEqual([ended, identities], ["stopped", 0]);
    assert.ok(gaveWay > 0);
    await holder.query("rollback");
  } finally {
    holder.release();
  }
  assert.equal((await (await cleanup()).once()).identities, 200);
});

/** Resolves when a sweep has waited for the lock. */
async function untilGaveWay(pool: pg.Pool): Promise<void> {
  for (let waited = false, over = false; !over;) {
    const { rows } = await pool.query(
      "select from pg_stat_activity where wait_event_type = 'Lock' and strpos(query, 'gone as') > 0 and pid <> pg_backend_pid()",
    );
    if (rows.length > 0) waited = true;
    else if (waited) over = true;
  }
}

test("a sweep that is stopped keeps what it did, and the next one does the rest", async (t) => {
  const { fill, cleanup, count } = await cleanupCase(t);
  await fill(old(5_000));
  const stopping = new AbortController();
  const worker = await cleanup({ batchMs: 1, dutyPercent: 1 });
  const first = worker.once({ signal: stopping.signal });
  while ((await count()) === 5_000) continue;
  stopping.abort();
  const { ended, identities } = await first;
  assert.equal(ended, "stopped");
  assert.ok(identities > 0 && identities < 5_000, `${identities}`);
  assert.equal((await (await cleanup()).once()).identities, 5_000 - identities);
});

test("a connection that is killed inside a batch loses that batch only", async (t) => {
  const { pool, fill, cleanup } = await cleanupCase(t);
  await fill(old(3_000));
  const holder = await pool.connect();
  try {
    await holder.query("begin");
    await holder.query("select from message limit 1 for update");
    const worker = await cleanup({ lockTimeoutMs: 60_000 });
    const failed = assert.rejects(worker.once());
    for (;;) {
      const { rows } = await pool.query<{ pid: number }>(
        "select pid from pg_stat_activity where wait_event_type = 'Lock' and strpos(query, 'gone as') > 0 and pid <> pg_backend_pid()",
      );
      if (rows[0] === undefined) continue;
      await pool.query("select pg_terminate_backend($1)", [rows[0].pid]);
      break;
    }
    await failed;
    await holder.query("rollback");
    assert.match((await worker.status()).cleanup.lastError ?? "", /terminat|connection/i);
    const { ended, identities } = await worker.once();
    assert.deepEqual([ended, identities], ["done", 3_000]);
  } finally {
    holder.release();
  }
});

test("pages in which nothing is due are not read again, and a rewritten table is looked at anew", async (t) => {
  const { pool, fill, cleanup } = await cleanupCase(t);
  await fill(Array.from({ length: 4_000 }, (_, i) => ({ id: `${i}`, at: hoursAgo(20) })));
  const worker = await cleanup();
  assert.ok((await worker.once()).batches > 0);
  assert.equal((await worker.once()).batches, 0, "nothing of them is due");
  await pool.query("update retention set window_ms = window_ms / 2");
  const shorter = await worker.once();
  assert.deepEqual([shorter.identities > 0, shorter.ended], [true, "done"]);
  await fill(Array.from({ length: 4_000 }, (_, i) => ({ id: `again ${i}`, at: hoursAgo(1) })));
  await worker.once();
  assert.equal((await worker.once()).batches, 0);
  await pool.query("vacuum full message");
  assert.ok((await worker.once()).batches > 0);
});

test("what comes in while pages are known is forgotten in its turn", async (t) => {
  const { pool, fill, cleanup, count } = await cleanupCase(t);
  // What is made older here stays in its page, as it does where nobody touches it, also while an old snapshot is about.
  await pool.query("alter table message set (fillfactor = 10)");
  const worker = await cleanup();
  for (let day = 0; day < 6; day++) {
    await fill(Array.from({ length: 500 }, () => ({ id: randomUUID(), at: hoursAgo(0) })));
    await fill(
      Array.from({ length: 5 }, () => ({ id: randomUUID(), at: hoursAgo(0) })),
      "shipping",
    );
    await worker.once();
    // Half a day passes: everything is as much older.
    await pool.query("update message set processed_at = processed_at - interval '12 hours'");
    await pool.query("update ledger_stretch set oldest = oldest - interval '12 hours'");
    await pool.query(
      "update retention set forgotten_to = forgotten_to - interval '12 hours', horizon = horizon - interval '12 hours'",
    );
  }
  await worker.once();
  assert.equal(
    await count(),
    2 * 500 + 6 * 5,
    "of the last day, which is the window; and all of who has no window",
  );
});

test("processes take turns: one sweep in its time, however many of them run", async (t) => {
  const { fill, cleanup, count } = await cleanupCase(t);
  await fill(old(1_000));
  const sweeps: Sweep[] = [];
  let told: () => void = () => undefined;
  const first = new Promise<void>((resolve) => (told = resolve));
  const workers = await Promise.all(
    Array.from({ length: 4 }, () =>
      cleanup({
        everyMs: 60_000,
        onSweep(swept) {
          sweeps.push(swept);
          told();
        },
      }),
    ),
  );
  // A loop that goes on after a failure would keep the process.
  for (const worker of workers) onTestEnd(t, () => worker.stop());
  for (const worker of workers) await worker.start();
  await first;
  const again = await workers[0]!.once();
  assert.ok(again.ended === "done" || again.ended === "busy");
  for (const worker of workers) await worker.stop();
  assert.equal(sweeps.filter(({ identities }) => identities > 0).length, 1);
  assert.ok(sweeps.length <= 2, `${sweeps.length}`);
  assert.equal(await count(), 0);
});

test("cycles of arriving and forgetting leave the table as large as it was", async (t) => {
  // On a server of its own: elsewhere another test's snapshot keeps vacuum from the dead rows.
  const { pool, fill, cleanup } = await cleanupCase(t, (await ownServer(t, { autovacuum: "off" })).url);
  const worker = await cleanup();
  const sizes: number[] = [];
  for (let cycle = 0; cycle < 10; cycle++) {
    await fill(old(4_000));
    await pool.query("update ledger_stretch set oldest = '-infinity'");
    await worker.once();
    // What autovacuum does between two sweeps.
    await pool.query("vacuum message");
    const { rows } = await pool.query<{ bytes: string }>(
      "select pg_relation_size('message') + pg_indexes_size('message') as bytes",
    );
    sizes.push(Number(rows[0]!.bytes));
  }
  assert.ok(sizes[9]! <= sizes[1]! * 1.3, sizes.join(" "));
});

test("through a pool with one connection that intake shares, and with a store of postgres.js as well", async (t) => {
  const { pool, url, schema, fill, cleanup } = await cleanupCase(t);
  await fill(old(50));
  const { default: postgresJs } = await import("postgres");
  const sql = postgresJs(url, { max: 1, onnotice: () => undefined });
  try {
    const swept = await (await cleanup({ store: postgres(sql, { schema }) })).once();
    assert.deepEqual([swept.ended, swept.identities], ["done", 50]);
  } finally {
    await sql.end();
  }
  const one = await testPool(t, { url, schema, max: 1 });
  const inbox = createInbox({ store: postgres(one, { schema }), consumer: "accounting", lanes: 1 });
  await fill(old(2_000));
  await pool.query("truncate ledger_stretch");
  const shared = await cleanup({ store: postgres(one, { schema }), dutyPercent: 20 });
  const [swept, outcome] = await Promise.all([
    shared.once(),
    inbox.process({ producer: "payments", id: "beside", payload: "x" }, async () => undefined),
  ]);
  assert.deepEqual([swept.identities, outcome.outcome], [2_000, "applied"]);
});

test("a loop of one's own tells by itself that it is caught up", async (t) => {
  const { pool, schema, fill, cleanup, count } = await cleanupCase(t);
  await pool.query("delete from source_clock");
  await fill(old(10));
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  await inbox.caughtUp("http");
  assert.equal((await (await cleanup()).once()).identities, 0, "its clock has just begun");
  await pool.query("update source_clock set since = since - interval '2 days'");
  await inbox.caughtUp("http");
  assert.equal((await (await cleanup()).once()).identities, 10);
  assert.equal(await count(), 0);
  await assert.rejects(async () => inbox.caughtUp("a\0b"), { code: "invalid-option" });
});

test("of two processes with different windows the longer wins, and whoever differs is told", async (t) => {
  const { pool, schema, fill, cleanup } = await cleanupCase(t);
  await fill(old(10));
  const told: string[] = [];
  const hear = (event: unknown): void => void told.push((event as { message: string }).message);
  telemetry.warning.subscribe(hear);
  t.after(() => telemetry.warning.unsubscribe(hear));
  const inbox = (windowMs: number) =>
    createInbox({ store: postgres(pool, { schema }), consumer: "accounting", windowMs });
  for (const hours of [72, 24]) {
    const work = inbox(hours * hour).work(() => undefined, { untilDrained: true });
    await work.finished;
  }
  const mine = told.filter((text) => text.includes("accounting"));
  assert.equal(mine.length, 1);
  assert.match(mine[0]!, /this process wants them kept for 86400000 ms, but 259200000 ms holds/);
  assert.equal((await (await cleanup()).once()).identities, 0, "kept for 72 hours");
  assert.throws(() => inbox(0), { code: "invalid-option" });
});

test("cleanup that falls behind says so once, works more of its time, and says when it has caught up", async (t) => {
  const { pool, schema, fill, cleanup } = await cleanupCase(t);
  await fill(Array.from({ length: 500 }, () => ({ id: randomUUID(), at: hoursAgo(23) })));
  await pool.query("analyze message");
  const worker = await cleanup();
  const said: string[] = [];
  const hear = (event: unknown): void => {
    const { message } = event as { message: string };
    if (message.startsWith("Cleanup ")) said.push(message);
  };
  telemetry.warning.subscribe(hear);
  t.after(() => telemetry.warning.unsubscribe(hear));
  assert.equal(worker.health().status, "idle");
  const sweep = async (): Promise<readonly unknown[]> => [
    (await worker.once()).identities,
    worker.health().status,
    said.length,
  ];
  assert.deepEqual(await sweep(), [0, "ok", 0]);
  // Ten hours in which the source went on, and nobody forgot anything.
  await pool.query(
    `with m as (update message set processed_at = processed_at - interval '10 hours')
     update ledger_stretch set oldest = oldest - interval '10 hours'`,
  );
  const { backlog, ...status } = await worker.status();
  assert.ok(backlog.behind && needsLook({ ...status, backlog }));
  assert.ok(Math.abs(backlog.behindMs / hour - 9) < 0.1, `${backlog.behindMs}`);
  assert.ok(backlog.neededPerSecond! > 0 && backlog.neededPerSecond! < 500 / (33 * 3_600) + 0.1);
  assert.deepEqual(await sweep(), [500, "behind", 1]);
  assert.match(said[0]!, /^Cleanup is behind: what was applied at \S+ should have been gone for .*--duty/);
  assert.deepEqual(await sweep(), [0, "ok", 2]);
  assert.match(said[1]!, /^Cleanup keeps up/);
  assert.deepEqual(await sweep(), [0, "ok", 2]);
  assert.equal((await postgres(pool, { schema }).cleanup.backlog([])).donePerSecond, 0);
});

test("how much of the time goes to batches rises only while cleanup is behind, and falls where it is in others' way", () => {
  const after = (behind: boolean, ...gaveWay: readonly boolean[]): number => {
    const duty = createDuty(10, behind);
    for (const one of gaveWay) duty.tell(one);
    return duty.percent();
  };
  const clean = Array.from({ length: 50 }, () => false);
  assert.equal(after(false, ...clean, true), 10);
  assert.equal(after(true, ...clean), 50);
  assert.equal(after(true, ...clean, true), 25);
  assert.equal(after(true, ...clean, true, true, true), 10);
  assert.equal(createDuty(80, true).percent(), 80);
});
