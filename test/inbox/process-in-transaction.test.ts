import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import postgresJs from "postgres";
import { z } from "zod";
import { createInbox, postgres } from "../../src/index.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { testPool } from "../support/postgres.ts";
import { gate, message, testInbox } from "./support.ts";

test("applies once inside the caller's own transaction, and is undone by its rollback", async (t) => {
  const { inbox, pool, effects } = await testInbox(t);
  const deliver = async (end: "commit" | "rollback") => {
    const client = await pool.connect();
    try {
      await client.query("begin");
      const result = await inbox.processInTransaction(client, message("m1"), async (received) => {
        await client.query("insert into effect (message_id) values ($1)", [received.id]);
        return "done";
      });
      await client.query(end);
      return result;
    } finally {
      client.release();
    }
  };
  assert.deepEqual(await deliver("rollback"), { outcome: "applied", result: "done" });
  assert.deepEqual(await effects(), {});
  assert.deepEqual(await deliver("commit"), { outcome: "applied", result: "done" });
  assert.deepEqual(await deliver("commit"), { outcome: "duplicate" });
  assert.deepEqual(await effects(), { m1: 1 });
});

test("works in a transaction of postgres.js", async (t) => {
  const { inbox, url, schema, effects } = await testInbox(t);
  const client = postgresJs(url, { max: 2, connection: { search_path: schema }, onnotice: () => undefined });
  onTestEnd(t, () => client.end());
  const deliver = () =>
    client.begin((tx) =>
      inbox.processInTransaction(tx, message("m1"), async ({ id }) => {
        await tx`insert into effect (message_id) values (${id})`;
      }),
    );
  assert.equal((await deliver()).outcome, "applied");
  assert.equal((await deliver()).outcome, "duplicate");
  assert.deepEqual(await effects(), { m1: 1 });
});

test("works with any object that can query, and proves that its transaction is open", async (t) => {
  const { inbox, pool, effects } = await testInbox(t);
  const client = await pool.connect();
  const orm = {
    query: (text: string, values?: readonly unknown[]) => client.query(text, values as unknown[]),
  };
  await assert.rejects(
    inbox.processInTransaction(orm, message("m1"), () => undefined),
    { code: "not-a-transaction" },
  );
  await client.query("begin");
  const { outcome } = await inbox.processInTransaction(orm, message("m1"), async ({ id }) => {
    await orm.query("insert into effect (message_id) values ($1)", [id]);
  });
  await client.query("commit");
  client.release();
  assert.equal(outcome, "applied");
  assert.deepEqual(await effects(), { m1: 1 });
});

test("refuses everything that is no open transaction, and writes nothing", async (t) => {
  const { inbox, pool, url, schema } = await testInbox(t);
  const idle = await pool.connect();
  const broken = await pool.connect();
  await broken.query("begin");
  await broken.query("select 1 / 0").catch(() => undefined);
  const client = postgresJs(url, { max: 1, onnotice: () => undefined });
  onTestEnd(t, () => client.end());
  const poolLike = { query: (text: string, values?: unknown[]) => pool.query(text, values) };
  const given: Record<string, unknown> = {
    pool,
    "an idle client": idle,
    "an aborted transaction": broken,
    "a postgres.js client": client,
    "a pool in disguise": poolLike,
    nothing: undefined,
    null: null,
    text: "tx",
    "an object without query": {},
  };
  for (const [name, tx] of Object.entries(given)) {
    let ran = false;
    const refused = inbox.processInTransaction(tx, message("m1"), () => (ran = true));
    await assert.rejects(refused, { code: "not-a-transaction" }, name);
    assert.equal(ran, false);
  }
  idle.release();
  broken.release(true);
  const { rows } = await pool.query(`select count(*)::int as n from ${schema}.message`);
  assert.deepEqual(rows, [{ n: 0 }]);
});

test("rejects with busy while another transaction holds the claim", async (t) => {
  const { inbox, pool, inboxWith } = await testInbox(t, { claimLockTimeoutMs: 30 });
  const started = gate();
  const finish = gate();
  const first = inbox.process(message("m1"), async () => {
    started.open();
    await finish.opened;
  });
  await started.opened;
  const client = await pool.connect();
  await client.query("begin");
  await assert.rejects(
    inboxWith({}).processInTransaction(client, message("m1"), () => undefined),
    { code: "busy", retryable: true },
  );
  await client.query("rollback");
  client.release();
  finish.open();
  assert.equal((await first).outcome, "applied");
});

test("keeps a conflicting and an unreadable body although the caller rolls back", async (t) => {
  const { inbox, pool, quarantined } = await testInbox(t);
  await inbox.process(message("m1", { payload: "first" }), () => undefined);
  const client = await pool.connect();
  await client.query("begin");
  const conflict = await inbox.processInTransaction(
    client,
    message("m1", { payload: "second" }),
    () => undefined,
  );
  const unreadable = await inbox.processInTransaction(
    client,
    message("a\0b", { payload: "third" }),
    () => undefined,
  );
  await client.query("rollback");
  client.release();
  assert.deepEqual([conflict.outcome, unreadable.outcome], ["conflict", "rejected"]);
  assert.deepEqual((await quarantined()).map(({ payload }) => payload?.toString()).sort(), [
    "second",
    "third",
  ]);
});

test("throws on what the work throws, so that the caller rolls back", async (t) => {
  const { inbox, pool, effects } = await testInbox(t);
  const client = await pool.connect();
  await client.query("begin");
  const failing = inbox.processInTransaction(client, message("m1"), () => Promise.reject(new Error("no")));
  await assert.rejects(failing, /^Error: no$/);
  await client.query("rollback");
  client.release();
  assert.equal((await inbox.process(message("m1"), () => undefined)).outcome, "applied");
  assert.deepEqual(await effects(), {});
});

test("leaves the caller's lock_timeout as it was", async (t) => {
  const { inbox, pool } = await testInbox(t);
  const client = await pool.connect();
  await client.query("begin");
  await client.query("set local lock_timeout = '1234ms'");
  await inbox.processInTransaction(client, message("m1"), () => undefined);
  assert.deepEqual((await client.query("show lock_timeout")).rows, [{ lock_timeout: "1234ms" }]);
  await client.query("commit");
  client.release();
});

test("reads the payload with the consumer's schema and quarantines what does not fit", async (t) => {
  const { store, pool, quarantined } = await testInbox(t);
  const inbox = createInbox({ store, consumer: "typed", payloadSchema: z.object({ amount: z.int() }) });
  const seen: number[] = [];
  const good = await inbox.process(
    message("m1", { payload: '{"amount":5}' }),
    ({ data }) => void seen.push(data.amount),
  );
  const [bad, text, fine] = await inbox.processBatch(
    [
      message("m2", { payload: '{"amount":"5"}', key: "k" }),
      message("m3", { payload: "no json", key: "k" }),
      message("m4", { payload: '{"amount":6}', key: "k" }),
    ],
    ({ data }) => void seen.push(data.amount),
  );
  assert.deepEqual(
    [good.outcome, bad?.outcome, text?.outcome, fine?.outcome],
    ["applied", "rejected", "rejected", "applied"],
  );
  assert.deepEqual(seen, [5, 6]);
  assert.deepEqual((await quarantined()).map(({ code }) => code).sort(), ["invalid-payload", "malformed"]);
  const client = await pool.connect();
  await client.query("begin");
  const joined = await inbox.processInTransaction(
    client,
    message("m5", { payload: '{"amount":7}' }),
    ({ data }) => data.amount,
  );
  await client.query("commit");
  client.release();
  assert.deepEqual(joined, { outcome: "applied", result: 7 });
});

test("needs no driver but the one it is given", async (t) => {
  // Plain pg without pipelining is served too, one statement after another.
  const { url, schema, effects, inboxWith } = await testInbox(t);
  const plain = await testPool(t, { url, schema, pipeline: false });
  assert.ok(plain instanceof pg.Pool);
  const inbox = inboxWith({ store: postgres(plain, { schema }) });
  const outcomes = await inbox.processBatch(
    Array.from({ length: 50 }, (_, i) => message(`m${i}`, { key: `k${i % 5}` })),
    async ({ id }, { tx }) => void (await tx.query("insert into effect (message_id) values ($1)", [id])),
  );
  assert.deepEqual(new Set(outcomes.map(({ outcome }) => outcome)), new Set(["applied"]));
  assert.equal(Object.keys(await effects()).length, 50);
});
