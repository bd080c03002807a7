import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type pg from "pg";
import { createInbox, postgres, quarantine } from "../../src/index.ts";
import { sweep, type SweepOptions, type Swept } from "../../src/retention/sweep.ts";
import { driverFor } from "../../src/store/postgres/drivers/detect.ts";
import { hoursAgo, ledgerCase } from "../reconcile/ledger-case.ts";
import { ownServer, testPool } from "../support/postgres.ts";

const hour = 3_600_000;
const quick = { windowMs: 24 * hour, dutyPercent: 100 } as const;
const old = (count: number): { id: string; at: Date }[] =>
  Array.from({ length: count }, () => ({ id: randomUUID(), at: hoursAgo(48) }));

test("forgets what was applied before the window, with its answers and attempts, and nothing else", async (t) => {
  const { pool, schema, fill } = await ledgerCase(t);
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
  const swept = await sweep(driverFor(pool), { ...quick, schema });
  assert.deepEqual([swept.ended, swept.identities], ["done", 3_001]);
  assert.ok(swept.batches > 1, "in more than one batch");
  const left = await pool.query("select message_id from message order by 1");
  assert.deepEqual(left.rows, [{ message_id: "stored" }, { message_id: "young" }]);
  assert.equal((await pool.query("select from answer")).rowCount, 1);
  assert.deepEqual((await pool.query("select message_id from attempt")).rows, [{ message_id: "stored" }]);
  assert.deepEqual(
    await sweep(driverFor(pool), { ...quick, schema }).then(({ identities }) => identities),
    0,
  );
});

test("what is in quarantine keeps its identity: rejected, and in conflict with what was applied", async (t) => {
  const { pool, schema } = await ledgerCase(t);
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  const message = (id: string, payload = id) => ({ producer: "payments", id, payload });
  await inbox.process(message("rejected"), async () => quarantine("unknown account"));
  for (const id of ["conflict", "decided", "plain"]) await inbox.process(message(id), async () => undefined);
  for (const id of ["conflict", "decided"])
    await inbox.process(message(id, "changed"), async () => undefined);
  await pool.query(
    "update quarantine set status = 'discarded', decided_at = now() where message_id = 'decided'",
  );
  await pool.query("update message set processed_at = processed_at - interval '2 days'");
  await sweep(driverFor(pool), { ...quick, schema });
  const { rows } = await pool.query("select message_id from message order by 1");
  assert.deepEqual(rows, [{ message_id: "conflict" }, { message_id: "rejected" }]);
});

test("eight workers at once beside claims: one works, none deadlocks, all that is old goes", async (t) => {
  const { pool, url, schema, fill } = await ledgerCase(t);
  await fill(old(20_000));
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  const pools = await Promise.all(Array.from({ length: 8 }, () => testPool(t, { url, schema, max: 1 })));
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
  const all = await Promise.all(
    pools.map((one) => sweep(driverFor(one), { ...quick, schema, dutyPercent: 60 })),
  );
  sweeping = false;
  const applied = await claims;
  const sum = (of: (swept: Swept) => number): number => all.reduce((total, swept) => total + of(swept), 0);
  assert.ok(
    all.some(({ ended }) => ended === "busy"),
    "others were told that one is at it",
  );
  // Whoever was told so comes again later; what the one left when it rested may have been another's.
  while ((await sweep(driverFor(pool), { ...quick, schema })).ended !== "done") continue;
  assert.ok(sum(({ identities }) => identities) > 0);
  const { rows } = await pool.query<{ n: number }>("select count(*)::int as n from message");
  assert.equal(rows[0]!.n, applied);
});

test("a batch gives way to whoever holds a lock, and goes on when it is free", async (t) => {
  const { pool, schema, fill } = await ledgerCase(t);
  await fill(old(200));
  const holder = await pool.connect();
  try {
    await holder.query("begin");
    await holder.query("select from message limit 1 for update");
    const controller = new AbortController();
    const given = sweep(driverFor(pool), { ...quick, schema, lockTimeoutMs: 20, signal: controller.signal });
    await untilGaveWay(pool);
    controller.abort();
    const { ended, gaveWay, identities } = await given;
    assert.deepEqual([ended, identities], ["stopped", 0]);
    assert.ok(gaveWay > 0);
    await holder.query("rollback");
  } finally {
    holder.release();
  }
  assert.equal((await sweep(driverFor(pool), { ...quick, schema })).identities, 200);
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
  const { pool, schema, fill } = await ledgerCase(t);
  await fill(old(5_000));
  const stopping = new AbortController();
  const options: SweepOptions = { ...quick, schema, batchMs: 1, dutyPercent: 1, signal: stopping.signal };
  const first = sweep(driverFor(pool), options);
  for (;;) {
    const { rows } = await pool.query<{ n: number }>("select count(*)::int as n from message");
    if (rows[0]!.n < 5_000) break;
  }
  stopping.abort();
  const { ended, identities } = await first;
  assert.equal(ended, "stopped");
  assert.ok(identities > 0 && identities < 5_000, `${identities}`);
  assert.equal((await sweep(driverFor(pool), { ...quick, schema })).identities, 5_000 - identities);
});

test("a connection that is killed inside a batch loses that batch only", async (t) => {
  const { pool, url, schema, fill } = await ledgerCase(t);
  await fill(old(3_000));
  const own = await testPool(t, { url, schema, max: 1 });
  const holder = await pool.connect();
  try {
    await holder.query("begin");
    await holder.query("select from message limit 1 for update");
    const dying = sweep(driverFor(own), { ...quick, schema, lockTimeoutMs: 60_000 });
    const failed = assert.rejects(dying);
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
  } finally {
    holder.release();
  }
  const { ended, identities } = await sweep(driverFor(own), { ...quick, schema });
  assert.deepEqual([ended, identities], ["done", 3_000], "the lock of the killed one is gone with it");
});

test("cycles of arriving and forgetting leave the table as large as it was", async (t) => {
  // On a server of its own: elsewhere another test's snapshot keeps vacuum from the dead rows.
  const { pool, schema, fill } = await ledgerCase(t, (await ownServer(t, { autovacuum: "off" })).url);
  const sizes: number[] = [];
  for (let cycle = 0; cycle < 10; cycle++) {
    await fill(old(4_000));
    await sweep(driverFor(pool), { ...quick, schema });
    // What autovacuum does between two sweeps.
    await pool.query("vacuum message");
    const { rows } = await pool.query<{ bytes: string }>(
      "select pg_relation_size('message') + pg_indexes_size('message') as bytes",
    );
    sizes.push(Number(rows[0]!.bytes));
  }
  assert.ok(sizes[9]! <= sizes[1]! * 1.3, sizes.join(" "));
});
