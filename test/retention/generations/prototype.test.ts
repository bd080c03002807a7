import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test, type TestContext } from "node:test";
import pg from "pg";
import { onTestEnd } from "../../support/cleanup.ts";
import { testDatabase, type TestDatabase } from "../../support/postgres.ts";
import { prototypeSql } from "./prototype.ts";

const always = "-infinity";

async function ledger(t: TestContext): Promise<TestDatabase & { connect(): Promise<pg.Client> }> {
  const database = await testDatabase(t);
  await database.pool.query(prototypeSql());
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({
      connectionString: database.url,
      options: `-c search_path=${database.schema} -c lock_timeout=10s`,
    });
    client.on("error", () => undefined);
    await client.connect();
    onTestEnd(t, () => client.end());
    return client;
  };
  return { ...database, connect };
}

type Queryable = Pick<pg.Client, "query"> | pg.Pool;

async function claim(on: Queryable, digest: string, sent: string | Date | null = always): Promise<string> {
  const { rows } = await (on as pg.Client).query<{ verdict: string }>(
    "select verdict from claim(array[$1::uuid], array[$2::timestamptz])",
    [digest, sent],
  );
  return rows[0]!.verdict;
}

const open = async (on: Queryable): Promise<boolean> =>
  (await (on as pg.Client).query<{ done: boolean }>("select open_generation() as done")).rows[0]!.done;

const forget = async (on: Queryable, olderThan = "0s", skew = "0s"): Promise<boolean> => {
  const text = "select forget_generation($1::interval, $2::interval) as done";
  return (await (on as pg.Client).query<{ done: boolean }>(text, [olderThan, skew])).rows[0]!.done;
};

/** Resolves when a session waits for a lock that another holds. */
async function untilWaiting(pool: pg.Pool, pid: number): Promise<void> {
  for (;;) {
    const { rows } = await pool.query(
      "select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'",
      [pid],
    );
    if (rows.length > 0) return;
  }
}

const pidOf = async (client: pg.Client): Promise<number> =>
  (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;

test("an identity is known through every generation that is kept, and late when it is forgotten", async (t) => {
  const { pool } = await ledger(t);
  const id = randomUUID();
  const sent = new Date(Date.now() - 60_000);
  assert.equal(await claim(pool, id, sent), "new");
  for (let i = 0; i < 2; i++) {
    assert.equal(await claim(pool, id, sent), "duplicate");
    assert.ok(await open(pool));
  }
  assert.equal(await claim(pool, id, sent), "duplicate");
  assert.equal(await open(pool), false, "the ring is full");
  assert.equal(await forget(pool, "1h"), false, "it is not old enough");
  assert.ok(await forget(pool));
  assert.equal(await claim(pool, id, sent), "late");
  assert.equal(await claim(pool, randomUUID(), sent), "late", "it cannot be proven new");
  assert.equal(await claim(pool, randomUUID(), new Date(Date.now() + 60_000)), "new");
  assert.ok(await open(pool), "there is room again");
});

test("a clock that runs ahead makes nothing new again, within the skew", async (t) => {
  const { pool } = await ledger(t);
  const id = randomUUID();
  const ahead = new Date(Date.now() + 60_000);
  assert.equal(await claim(pool, id, ahead), "new");
  await open(pool);
  assert.ok(await forget(pool, "0s", "5m"));
  assert.equal(await claim(pool, id, ahead), "late");
});

test("opening a generation waits for the claim in flight, and a copy behind it waits for both and is a duplicate", async (t) => {
  const { pool, connect } = await ledger(t);
  const [first, rotator, second] = [await connect(), await connect(), await connect()];
  const id = randomUUID();
  await first.query("begin");
  assert.equal(await claim(first, id), "new");
  const opened = open(rotator);
  await untilWaiting(pool, await pidOfWaiting(pool, "open_generation"));
  const copy = claim(second, id);
  await untilWaiting(pool, await pidOfWaiting(pool, "claim("));
  await first.query("commit");
  assert.ok(await opened);
  assert.equal(await copy, "duplicate");
});

async function pidOfWaiting(pool: pg.Pool, text: string): Promise<number> {
  for (;;) {
    const { rows } = await pool.query<{ pid: number }>(
      "select pid from pg_stat_activity where strpos(query, $1) > 0 and wait_event_type = 'Lock' and pid <> pg_backend_pid()",
      [text],
    );
    if (rows[0] !== undefined) return rows[0].pid;
  }
}

for (const isolation of ["repeatable read", "serializable"]) {
  test(`${isolation}: a snapshot from before a generation was opened is refused, and tried again it is a duplicate`, async (t) => {
    const { pool, connect } = await ledger(t);
    const client = await connect();
    const id = randomUUID();
    await client.query(`begin isolation level ${isolation}`);
    await client.query("select count(*) from generation");
    assert.equal(await claim(pool, id), "new");
    assert.ok(await open(pool));
    await assert.rejects(claim(client, id), { code: "40001" });
    await client.query("rollback");
    await client.query(`begin isolation level ${isolation}`);
    assert.equal(await claim(client, id), "duplicate");
    await client.query("commit");
  });

  test(`${isolation}: what was forgotten after the snapshot is refused too, though truncation is there for every snapshot`, async (t) => {
    const { pool, connect } = await ledger(t);
    const client = await connect();
    const id = randomUUID();
    assert.equal(await claim(pool, id, new Date()), "new");
    await open(pool);
    await client.query(`begin isolation level ${isolation}`);
    await client.query("select count(*) from generation");
    assert.ok(await forget(pool));
    await assert.rejects(claim(client, id, new Date()), { code: "40001" });
    await client.query("rollback");
  });

  test(`${isolation}: a claim in flight is waited for as well`, async (t) => {
    const { pool, connect } = await ledger(t);
    const [client, rotator] = [await connect(), await connect()];
    const pid = await pidOf(rotator);
    await client.query(`begin isolation level ${isolation}`);
    const id = randomUUID();
    assert.equal(await claim(client, id), "new");
    const opened = open(rotator);
    await untilWaiting(pool, pid);
    await client.query("commit");
    assert.ok(await opened);
    assert.equal(await claim(pool, id), "duplicate");
  });
}

test("whoever opens a generation gives up after its lock timeout, and claims go on", async (t) => {
  const { pool, connect } = await ledger(t);
  const [client, rotator] = [await connect(), await connect()];
  await client.query("begin");
  assert.equal(await claim(client, randomUUID()), "new");
  await rotator.query("set lock_timeout = '50ms'");
  await assert.rejects(open(rotator), { code: "55P03" });
  assert.equal(await claim(pool, randomUUID()), "new");
  await client.query("rollback");
});

test("what is stored and not applied keeps its identity when its generation goes", async (t) => {
  const { pool } = await ledger(t);
  const [stored, applied] = [randomUUID(), randomUUID()];
  await claim(pool, applied, new Date());
  await claim(pool, stored, new Date());
  await pool.query("update identity_0 set processed_at = null where digest = $1", [stored]);
  await open(pool);
  assert.ok(await forget(pool));
  assert.equal(await claim(pool, stored, new Date(0)), "stored");
  assert.equal(await claim(pool, applied, new Date(0)), "late");
});

test("a generation of 200,000 identities goes whole, and leaves nothing to vacuum", async (t) => {
  const { pool } = await ledger(t);
  await pool.query("insert into identity_0 select gen_random_uuid(), now() from generate_series(1, 200000)");
  await open(pool);
  const { rows: before } = await pool.query<{ bytes: string }>(
    "select pg_total_relation_size('identity_0') as bytes",
  );
  const start = performance.now();
  assert.ok(await forget(pool));
  const ms = performance.now() - start;
  const { rows: after } = await pool.query<{ bytes: string }>(
    "select pg_total_relation_size('identity_0') as bytes",
  );
  t.diagnostic(`forgotten in ${Math.round(ms)} ms`);
  assert.ok(Number(after[0]!.bytes) < Number(before[0]!.bytes) / 100);
});
