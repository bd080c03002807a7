import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import postgresJs from "postgres";
import { createInbox, postgres, type Inbox } from "../../src/index.ts";
import { channelOf } from "../../src/store/postgres/hints.ts";
import { message, recordEffect, testInbox } from "../inbox/support.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { inTime, until as untilTrue } from "../support/in-time.ts";
import { pgbouncerPath, startPgbouncer } from "../support/pgbouncer.ts";
import { testPool } from "../support/postgres.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";
import { until } from "./support.ts";

/** Resolves when the worker hears hints. */
async function heard(worker: ReturnType<Inbox["work"]>): Promise<void> {
  await untilTrue("the worker hears hints", async () => {
    const health = worker.health();
    return { holds: health.listening, answer: health };
  });
}

/** Calls when a hint comes. One that is counted already may be the listener's own. */
function nextHint(t: Scope, listen: (onHint: () => void) => { close(): void }): () => Promise<void> {
  let onHint = (): void => undefined;
  const hints = listen(() => onHint());
  onTestEnd(t, async () => hints.close());
  return () => new Promise((resolve) => (onHint = resolve));
}

/** The server processes that listen for the consumer of this test's schema. */
const listeners = async (pool: pg.Pool, schema: string): Promise<number[]> => {
  const { rows } = await pool.query<{ pid: number }>(
    "select pid from pg_stat_activity where query = $1 and pid <> pg_backend_pid()",
    [`listen "${channelOf(schema, "accounting")}"`],
  );
  return rows.map(({ pid }) => pid);
};

for (const driver of ["pg", "postgres"] as const) {
  test(`${driver}: what another process stores wakes a worker`, async (t) => {
    const { url, schema, pool, inbox } = await testInbox(t);
    const own =
      driver === "pg"
        ? await testPool(t, { url })
        : postgresJs(url, { max: 4, onnotice: () => undefined, connection: { search_path: schema } });
    if (typeof own === "function") onTestEnd(t, () => own.end({ timeout: 1 }));
    const store = postgres(own, { schema });
    const hint = nextHint(t, (onHint) => store.pending.listen("accounting", onHint));
    const elsewhere = createInbox({ store, consumer: "accounting", lanes: 2 });
    const worker = elsewhere.work((received, { tx }) =>
      tx.query(`insert into ${schema}.effect (message_id) values ($1)`, [received.id]).then(() => undefined),
    );
    await heard(worker);
    const woken = hint();
    assert.equal((await inbox.accept(message("m1"))).outcome, "stored");
    await woken;
    await until(pool, "(select count(*) from effect) = 1");
    await worker.stop();
    assert.equal(worker.health().status, "ended");
  });
}

test("a hint is for its consumer and its schema alone", async (t) => {
  const { store, pool, schema } = await testInbox(t);
  const others: string[] = [];
  const another = postgres(pool, { schema: `${schema}x` });
  const all = [
    store.pending.listen("billing", () => others.push("another consumer")),
    another.pending.listen("accounting", () => others.push("another schema")),
  ];
  onTestEnd(t, async () => all.forEach((hints) => hints.close()));
  const hint = nextHint(t, (onHint) => store.pending.listen("accounting", onHint));
  const ready = [hint(), store.pending.hint("accounting")];
  await Promise.all(ready);
  await store.pending.hint("billing");
  others.length = 0;
  const first = hint();
  await store.pending.hint("accounting");
  await first;
  // In the order in which they were sent: the others' would have come by now, but for their own beginnings.
  const second = hint();
  const before = others.length;
  await store.pending.hint("accounting");
  await second;
  assert.equal(others.length, before);
});

test("a listener whose connection is ended listens again, and looks at once for what it missed", async (t) => {
  const { schema, pool, inbox } = await testInbox(t);
  const worker = inbox.work(recordEffect);
  onTestEnd(t, async () => void (await worker.stop()));
  await heard(worker);
  const pids = await listeners(pool, schema);
  assert.equal(pids.length, 1);
  // Looked at from before on: it may listen again before the one who ended it has its answer.
  let over = false;
  const deaf = (async () => {
    while (worker.health().listening && !over) await new Promise(setImmediate);
  })();
  onTestEnd(t, () => void (over = true));
  await pool.query("select pg_terminate_backend(pid) from unnest($1::int[]) as pid", [pids]);
  await inTime("the worker tells that it does not listen", deaf, () => worker.health());
  await heard(worker);
  assert.notDeepEqual(await listeners(pool, schema), pids);
  assert.equal((await inbox.accept(message("m1"))).outcome, "stored");
  await until(pool, "(select count(*) from effect) = 1");
});

test("behind a pooler that gives every transaction another connection a worker is deaf, says so, and works", async (t) => {
  if (!requireOrSkip(t, pgbouncerPath() !== undefined, "pgbouncer is not installed")) return;
  const { url, schema, store, pool, inbox } = await testInbox(t);
  const pooled = await testPool(t, { url: await startPgbouncer(t, url) });
  const worker = createInbox({ store: postgres(pooled, { schema }), consumer: "accounting", lanes: 2 }).work(
    (received, { tx }) =>
      tx.query(`insert into ${schema}.effect (message_id) values ($1)`, [received.id]).then(() => undefined),
  );
  onTestEnd(t, async () => void (await worker.stop()));
  while ((await listeners(pool, schema)).length === 0) await new Promise(setImmediate);
  // A listener of the server's own hears what is sent after the worker began to listen; the worker does not.
  const hint = nextHint(t, (onHint) => store.pending.listen("accounting", onHint));
  await hint();
  for (let i = 0; i < 3; i++) {
    const next = hint();
    await store.pending.hint("accounting");
    await next;
  }
  assert.equal((await inbox.accept(message("m1"))).outcome, "stored");
  await until(pool, "(select count(*) from effect) = 1");
  assert.equal(worker.health().listening, false);
});

test("a worker that shall not listen takes no connection for it", async (t) => {
  const { pool, inbox } = await testInbox(t);
  const worker = inbox.work(recordEffect, { listen: false });
  await inbox.accept(message("m1"));
  await until(pool, "(select count(*) from effect) = 1");
  assert.equal(worker.health().listening, false);
  await worker.stop();
});
