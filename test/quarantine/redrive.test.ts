import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import type pg from "pg";
import { createInbox } from "../../src/inbox/create-inbox.ts";
import { PermanentError } from "../../src/errors.ts";
import type { MessageHandler } from "../../src/inbox/handler.ts";
import { createQuarantine } from "../../src/quarantine/quarantine.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { spawnInbox, runInbox } from "../cli/run-inbox.ts";
import { effectsInOrder, listSource, until } from "../pending/support.ts";
import { ann, consumer, entryId, put, testStore, type TestStore } from "./support.ts";

const program = join(import.meta.dirname, "operator-process.ts");

interface Actor {
  /** Lets it begin. */
  readonly begin: () => void;
  /** Ends its stdin and resolves with what it counted. */
  readonly result: () => Promise<Record<string, number>>;
}

/** Starts a process and resolves when it is ready to begin. */
async function actor(t: Scope, { url, schema }: TestStore, task: object): Promise<Actor> {
  const child = spawn(process.execPath, ["--import", "tsx", program], { stdio: ["pipe", "pipe", "inherit"] });
  onTestEnd(t, () => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  child.stdin.write(`${JSON.stringify({ url, schema, entries: [], messages: [], ...task })}\n`);
  assert.equal((await lines.next()).value, "READY");
  return {
    begin: () => void child.stdin.write("\n"),
    async result() {
      child.stdin.end();
      return JSON.parse(String((await lines.next()).value)) as Record<string, number>;
    },
  };
}

const effectTable = (pool: pg.Pool): Promise<unknown> =>
  pool.query("create table effect (message_id text not null, at timestamptz default clock_timestamp())");

const recordEffect: MessageHandler = async ({ id }, { tx }) => {
  await tx.query("insert into effect (message_id) values ($1)", [id]);
};

test(
  "two operators, a redelivery and workers at once: one effect a message, one decision an entry",
  { timeout: 120_000 },
  async (t) => {
    const test = await testStore(t);
    const { store, pool } = test;
    await effectTable(pool);
    const messages = Array.from({ length: 60 }, (_, i) => `m${i}`);
    for (const id of messages) await put(store, id, { payload: `{"id":"${id}"}`, key: `k${id.length}` });
    const entries = (await store.quarantined.list({ first: "oldest" })).map(({ id }) => id);

    const actors = await Promise.all([
      actor(t, test, { kind: "retry", by: "ann", entries }),
      actor(t, test, { kind: "repair", by: "bob", entries: [...entries].reverse() }),
      actor(t, test, { kind: "retry", by: "cleo", entries }),
      actor(t, test, { kind: "redeliver", messages }),
      actor(t, test, { kind: "work" }),
      actor(t, test, { kind: "work" }),
    ]);
    // The redelivery first: it is to meet messages before their decision.
    for (const { begin } of actors.toReversed()) begin();
    const [ann, bob, cleo] = await Promise.all(actors.slice(0, 3).map(({ result }) => result()));
    await until(pool, "not exists (select from pending)");
    const [redelivered] = await Promise.all(actors.slice(3).map(({ result }) => result()));

    const decided = [ann, bob, cleo].map((counts) => counts!["decided"] ?? 0);
    const refused = [ann, bob, cleo].map((counts) => counts!["already-decided"] ?? 0);
    assert.equal(decided[0]! + decided[1]! + decided[2]!, 60, JSON.stringify([ann, bob, cleo]));
    assert.equal(refused[0]! + refused[1]! + refused[2]!, 120, JSON.stringify([ann, bob, cleo]));
    const { rows } = await pool.query<{ effects: number; messages: number }>(
      "select count(*)::int as effects, count(distinct message_id)::int as messages from effect",
    );
    assert.deepEqual(rows, [{ effects: 60, messages: 60 }]);
    // The redelivery found each message stored or applied, before and after a repair, and ran none itself.
    const outcomes = Object.keys(redelivered!).filter((outcome) => outcome !== "busy");
    assert.deepEqual(outcomes.sort(), ["duplicate", "stored"], JSON.stringify(redelivered));
    assert.equal(await store.quarantined.count({}), 0);
  },
);

test("a retry goes before what waits behind it: the key's messages take effect in their order", async (t) => {
  const { store, pool } = await testStore(t);
  await effectTable(pool);
  const inbox = createInbox({ store, consumer, retry: { delayMs: 1, maxAttempts: 1 } });
  let broken = true;
  const handler: MessageHandler = async (message, context) => {
    if (broken && message.id === "a1") throw new Error("not yet");
    await recordEffect(message, context);
  };
  const keyed = (id: string) => ({ producer: "shop", id, key: id.slice(0, 1), payload: `{"id":"${id}"}` });
  await inbox.run(listSource(["a1", "a2", "b1", "a3"].map(keyed)), handler).finished;
  assert.deepEqual(await effectsInOrder(pool), ["b1"]);
  broken = false;
  await createQuarantine({ store }).retry(await entryId(store, "a1"), ann);
  await inbox.run(listSource(["a4", "b2"].map(keyed)), handler).finished;
  const order = await effectsInOrder(pool);
  assert.deepEqual(
    order.filter((id) => id.startsWith("a")),
    ["a1", "a2", "a3", "a4"],
  );
  assert.deepEqual([...order].sort(), ["a1", "a2", "a3", "a4", "b1", "b2"]);
});

test("entries of one key take effect in the order they came, in whatever order they were given back", async (t) => {
  const { store, pool } = await testStore(t);
  await effectTable(pool);
  const ids = ["m1", "m2", "m3", "m4", "m5"];
  for (const id of ids) await put(store, id, { key: "k" });
  const quarantine = createQuarantine({ store });
  for (const id of ["m3", "m5", "m1"]) await quarantine.retry(await entryId(store, id), ann);
  const { id } = await quarantine.retryMany({ key: "k" }, { ...ann, expected: 2 });
  await quarantine.carryOn(id);
  const inbox = createInbox({ store, consumer });
  await inbox.work(recordEffect, { untilDrained: true }).finished;
  assert.deepEqual(await effectsInOrder(pool), ids);
});

test("a discard lets the key go on without the message", async (t) => {
  const { store, pool } = await testStore(t);
  await effectTable(pool);
  const inbox = createInbox({ store, consumer });
  const handler: MessageHandler = async (message, context) => {
    if (message.id === "a1") throw new PermanentError("never");
    await recordEffect(message, context);
  };
  const keyed = (id: string) => ({ producer: "shop", id, key: "a", payload: `{"id":"${id}"}` });
  await inbox.run(listSource(["a1", "a2", "a3"].map(keyed)), handler).finished;
  assert.deepEqual(await effectsInOrder(pool), []);
  await createQuarantine({ store }).discard(await entryId(store, "a1"), ann);
  await inbox.work(handler, { untilDrained: true }).finished;
  assert.deepEqual(await effectsInOrder(pool), ["a2", "a3"]);
});

test("what fails again is a second entry that names the first, and waits: nothing goes round", async (t) => {
  const { store, pool } = await testStore(t);
  await effectTable(pool);
  const inbox = createInbox({ store, consumer, retry: { delayMs: 1, maxAttempts: 2, jitter: 0 } });
  let runs = 0;
  const failing: MessageHandler = () => {
    runs++;
    throw new Error("never");
  };
  const quarantine = createQuarantine({ store });
  await inbox.run(listSource([{ producer: "shop", id: "m1", payload: '{"id":"m1"}' }]), failing).finished;
  assert.equal(runs, 2);
  const [first] = await quarantine.list();
  await quarantine.retry(first!.id, ann);
  await inbox.work(failing, { untilDrained: true }).finished;
  const [second, ...others] = await quarantine.list();
  assert.deepEqual(others, []);
  assert.deepEqual([second?.againOf, second?.code], [first!.id, "attempts-exhausted"]);
  const ran = runs;
  assert.ok(ran > 2 && ran <= 4, `${ran} runs`);
  await inbox.work(failing, { untilDrained: true }).finished;
  assert.equal(runs, ran);

  await quarantine.repair(second!.id, { payload: '{"id":"m1","repaired":true}' }, ann);
  await inbox.work(recordEffect, { untilDrained: true }).finished;
  assert.deepEqual(await effectsInOrder(pool), ["m1"]);
  const history = await quarantine.history({ consumer, tenant: "", producer: "shop", id: "m1" });
  assert.deepEqual(
    history.map(({ status, againOf }) => [status, againOf]),
    [
      ["retried", undefined],
      ["repaired", first!.id],
    ],
  );
});

test(
  "a command that is killed between two batches has decided; the rest is carried on, and nothing twice",
  { timeout: 60_000 },
  async (t) => {
    const { store, pool, url, schema } = await testStore(t);
    await pool.query(`
      with taken as (
        insert into message (digest, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
        select gen_random_uuid(), 'accounting', '', 'shop', 'm' || i, '\\x00', 'b', '1' from generate_series(1, 5000) i
        returning *
      )
      insert into quarantine (consumer, digest, tenant, producer, message_id, headers, payload, fingerprint,
                              fingerprint_mode, code, error, attempts, first_failed_at, last_failed_at, handler_version,
                              error_group, error_shape, payload_bytes)
      select consumer, digest, tenant, producer, message_id, '{}', '{}', fingerprint, 'b', 'handler-rejected', 'e', 1,
             now(), now(), '1', 'g', 'e', 2 from taken order by substr(message_id, 2)::int`);
    const env = { DATABASE_URL: url };
    const locker = await pool.connect();
    try {
      await locker.query("begin");
      await locker.query("select from quarantine where id = (select max(id) from quarantine) for update");
      const child = spawnInbox(
        ["quarantine", "retry", "--all", "--expected", "5000", "--why", "fixed", "--schema", schema],
        { env },
      );
      child.stdin!.end();
      // It has come to the last batch, and waits there.
      const { rows } = await locker.query<{ pid: number }>("select pg_backend_pid() as pid");
      await until(
        pool,
        `exists (select from pg_stat_activity where ${rows[0]!.pid} = any (pg_blocking_pids(pid)))`,
      );
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
      await locker.query("rollback");
    } finally {
      locker.release();
    }
    const [left] = await store.quarantined.unfinished();
    assert.ok(left!.decided >= 2_500 && left!.decided < 5_000, `${left!.decided} decided`);
    assert.equal(await store.quarantined.count({}), 5_000 - left!.decided);
    const resumed = await runInbox(["quarantine", "resume", "--json", "--schema", schema], { env });
    assert.equal(resumed.code, 0, resumed.stderr);
    const decision = JSON.parse(resumed.stdout) as Record<string, unknown>;
    assert.deepEqual([decision["matched"], decision["decided"], decision["skipped"]], [5_000, 5_000, 0]);
    assert.equal(await store.quarantined.count({}), 0);
    assert.equal(await store.operator.countPending({ state: "ready" }), 5_000);
  },
);
