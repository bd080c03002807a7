import assert from "node:assert/strict";
import { test } from "node:test";
import { postgres, sql, type HandlerTx, type MessageHandler } from "../../src/index.ts";
import { faultProxy } from "../support/fault-proxy.ts";
import { testPool } from "../support/postgres.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { gate, message, recordEffect, testInbox } from "./support.ts";

const attempts = "select count(*)::int as n from attempt";

test("commits nothing when the handler swallows a statement's error (DRV-01)", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const swallowing: MessageHandler = async (received, context) => {
    await recordEffect(received, context);
    await context.tx.query("select * from nowhere").catch(() => undefined);
  };
  const result = await inbox.process(message("m1"), swallowing);
  assert.deepEqual([result.outcome, (result.error as { code?: string }).code], ["failed", "swallowed-error"]);
  assert.deepEqual(await effects(), {});
});

test("lets a handler recover from an error by a savepoint of its own", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const result = await inbox.process(message("m1"), async (received, context) => {
    await context.tx.query("savepoint s");
    await context.tx.query("select * from nowhere").catch(() => undefined);
    await context.tx.query("rollback to savepoint s");
    await recordEffect(received, context);
  });
  assert.equal(result.outcome, "applied");
  assert.deepEqual(await effects(), { m1: 1 });
});

test("refuses a handler that would end the transaction", async (t) => {
  const { inbox, effects } = await testInbox(t);
  for (const [i, text] of [
    "commit",
    " ROLLBACK",
    "begin",
    "End",
    "abort",
    "start  transaction",
    "rollback work",
  ].entries()) {
    const result = await inbox.process(message(`m${i}`), async (received, context) => {
      await recordEffect(received, context);
      await context.tx.query(text);
    });
    assert.equal(result.outcome, "rejected", text);
  }
  assert.deepEqual(await effects(), {});
});

test("rolls back a handler that leaves a query running, and refuses its tx afterwards (DRV-04)", async (t) => {
  const { inbox, effects } = await testInbox(t);
  let kept: HandlerTx | undefined;
  const floating = await inbox.process(message("m1"), async ({ id }, { tx }) => {
    kept = tx;
    void tx.query("insert into effect (message_id) values ($1)", [id]);
  });
  assert.deepEqual(
    [floating.outcome, (floating.error as { code?: string }).code],
    ["failed", "floating-query"],
  );
  await assert.rejects(async () => kept?.query("insert into effect (message_id) values ('late')"), {
    code: "transaction-sealed",
  });
  assert.deepEqual(await effects(), {});
});

test("drops a query that comes after the handler has settled, without ending the process (DRV-04)", async (t) => {
  const { inbox, effects } = await testInbox(t, {}, { max: 2 });
  const ran = gate();
  const result = await inbox.process(message("m1"), async (received, context) => {
    await recordEffect(received, context);
    setTimeout(() => {
      // Nobody waits for it: an unhandled rejection here would end the test run.
      void context.tx.query("insert into effect (message_id) values ('floating')");
      ran.open();
    }, 20);
  });
  assert.equal(result.outcome, "applied");
  await ran.opened;
  assert.equal((await inbox.process(message("m2"), recordEffect)).outcome, "applied");
  assert.deepEqual(await effects(), { m1: 1, m2: 1 });
});

test("commits nothing and counts nothing when the server ends the connection inside the handler (DRV-03, DRV-06)", async (t) => {
  const { inbox, effects, pool } = await testInbox(t);
  let aborted = false;
  let late: Promise<unknown> = Promise.resolve();
  const used = gate();
  const result = await inbox.process(message("m1"), async (received, context) => {
    await recordEffect(received, context);
    const { rows } = await context.tx.query<{ pid: number }>("select pg_backend_pid() as pid");
    const told = new Promise<void>((resolve) =>
      context.signal.addEventListener(
        "abort",
        () => {
          aborted = true;
          resolve();
        },
        { once: true },
      ),
    );
    // Meanwhile others use the pool: a driver that reconnects would give this handler their connection.
    await pool.query("select pg_terminate_backend($1)", [rows[0]?.pid]);
    await told;
    late = context.tx.query("insert into effect (message_id) values ('after')");
    used.open();
    await late;
  });
  assert.equal(aborted, true);
  assert.deepEqual([result.outcome, result.settle, result.attempts], ["failed", "retry", undefined]);
  assert.equal((result.error as { code?: string }).code, "connection-lost");
  // The inbox does not wait for a handler whose connection is gone.
  await used.opened;
  await assert.rejects(late);
  assert.deepEqual(await effects(), {});
  assert.deepEqual((await pool.query(attempts)).rows, [{ n: 0 }]);
  assert.equal((await inbox.process(message("m1"), recordEffect)).outcome, "applied");
});

test("does not acknowledge or count when the answer to COMMIT is lost; the redelivery finds it applied (DRV-02)", async (t) => {
  const { url, schema, inboxWith, effects, pool } = await testInbox(t);
  const server = new URL(url);
  const proxy = await faultProxy(t, { host: server.hostname, port: Number(server.port) });
  server.port = String(proxy.port);
  const inbox = inboxWith({ store: postgres(await testPool(t, { url: server.href, schema }), { schema }) });
  assert.equal((await inbox.process(message("warm"), recordEffect)).outcome, "applied");
  const result = await inbox.process(message("m1"), async (received, context) => {
    await recordEffect(received, context);
    proxy.dropReplyTo("commit");
  });
  assert.deepEqual([result.outcome, result.settle, result.attempts], ["failed", "retry", undefined]);
  assert.equal((result.error as { code?: string }).code, "commit-unknown");
  assert.equal((await inbox.process(message("m1"), recordEffect)).outcome, "duplicate");
  assert.deepEqual(await effects(), { m1: 1, warm: 1 });
  assert.deepEqual((await pool.query(attempts)).rows, [{ n: 0 }]);
});

test("warns once when handlers write elsewhere than into their transaction (CLM-16)", async (t) => {
  const { inboxWith, pool } = await testInbox(t);
  const warnings: string[] = [];
  const listener = (event: unknown): void => void warnings.push((event as { message: string }).message);
  telemetry.warning.subscribe(listener);
  onTestEnd(t, () => void telemetry.warning.unsubscribe(listener));
  const some = (name: string) => Array.from({ length: 60 }, (_, i) => message(`${name}${i}`, { key: "k" }));
  const [careful, careless] = [inboxWith({ consumer: "careful" }), inboxWith({ consumer: "careless" })];
  await careful.processBatch(some("m"), recordEffect);
  await careless.processBatch(
    some("m"),
    async ({ id }) => void (await pool.query("insert into effect values ($1)", [id])),
  );
  assert.equal(warnings.filter((text) => text.includes('"careful"')).length, 0);
  assert.equal(warnings.filter((text) => text.includes('"careless"') && text.includes("tx")).length, 1);
});

test("does not deadlock handlers that use the pool instead of their tx (DRV-05)", async (t) => {
  const { inbox, pool } = await testInbox(t, { lanes: 4 }, { max: 5 });
  const outcomes = await inbox.processBatch(
    Array.from({ length: 40 }, (_, i) => message(`m${i}`, { key: `k${i}` })),
    async ({ id }) => void (await pool.query("insert into effect (message_id) values ($1)", [id])),
  );
  assert.deepEqual(new Set(outcomes.map(({ outcome }) => outcome)), new Set(["applied"]));
});

test("refuses more lanes than the pool has connections to spare (DRV-05)", async (t) => {
  const { inboxWith } = await testInbox(t, {}, { max: 4 });
  assert.throws(() => inboxWith({ lanes: 4 }), {
    code: "invalid-option",
    message: /lanes: 4 needs a pool of at least 5/,
  });
});

test("answers failed, uncounted, when no connection can be had in time", async (t) => {
  const { inboxWith, pool } = await testInbox(t, {}, { max: 1 });
  const inbox = inboxWith({ connectTimeoutMs: 30 });
  const held = await pool.connect();
  const result = await inbox.process(message("m1"), recordEffect);
  assert.deepEqual(
    [result.outcome, (result.error as { code?: string }).code],
    ["failed", "store-unavailable"],
  );
  held.release();
  assert.equal((await inbox.process(message("m1"), recordEffect)).outcome, "applied");
});

test("names what to run when the schema is not there", async (t) => {
  const { inboxWith, pool } = await testInbox(t);
  const result = await inboxWith({ store: postgres(pool, { schema: "no inbox here" }) }).process(
    message("m1"),
    recordEffect,
  );
  assert.equal(result.outcome, "failed");
  assert.match(
    result.error?.message ?? "",
    /Schema "no inbox here" holds no inbox\. Run: inbox migrate --schema "no inbox here"/,
  );
});

test("counts a statement that changes another number of rows than it must as a failure", async (t) => {
  const { inbox, pool } = await testInbox(t);
  await pool.query("insert into account (id) values (1)");
  const credit =
    (id: number): MessageHandler =>
    () =>
      sql`update account set balance = balance + 5 where id = ${id}`.expecting(1);
  assert.equal((await inbox.process(message("m1"), credit(1))).outcome, "applied");
  const missed = await inbox.process(message("m2"), credit(2));
  assert.deepEqual(
    [missed.outcome, (missed.error as { code?: string }).code],
    ["failed", "unexpected-row-count"],
  );
});

test("refuses a handler's statement that fails only at COMMIT, and keeps the claim out", async (t) => {
  const { inbox, pool } = await testInbox(t);
  await pool.query("create table child (parent int references account (id) deferrable initially deferred)");
  const result = await inbox.process(message("m1"), () => sql`insert into child values (7)`);
  assert.deepEqual([result.outcome, (result.error as { code?: string }).code], ["failed", "23503"]);
  assert.deepEqual((await pool.query("select count(*)::int as n from message")).rows, [{ n: 0 }]);
});

test("gives statements their values as parameters, whatever is in them", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const hostile = `'); drop table effect; -- $1 "\\ \u{1f600}`;
  await inbox.process(message("m1"), () => sql`insert into effect (message_id) values (${hostile})`);
  assert.deepEqual(await effects(), { [hostile]: 1 });
});

test("does not hold a second connection while a handler runs", async (t) => {
  const { inbox } = await testInbox(t, { lanes: 1 }, { max: 1 });
  for (const id of ["m1", "m2"]) {
    assert.equal((await inbox.process(message(id), recordEffect)).outcome, "applied");
  }
  // Conflict, failure and quarantine need connections of their own, one after another.
  assert.equal((await inbox.process(message("m1", { payload: "other" }), recordEffect)).outcome, "conflict");
  assert.equal((await inbox.process(message("m3"), () => Promise.reject(new Error("no")))).outcome, "failed");
});
