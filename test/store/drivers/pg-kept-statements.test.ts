import assert from "node:assert/strict";
import { test } from "node:test";
import { pgDriver } from "../../../src/store/postgres/drivers/pg.ts";
import type { DriverConnection } from "../../../src/store/postgres/driver.ts";
import { pgbouncerPath, startPgbouncer } from "../../support/pgbouncer.ts";
import { testDatabase, testPool, testUrl } from "../../support/postgres.ts";
import { requireOrSkip } from "../../support/require-or-skip.ts";
import { message, testInbox } from "../../inbox/support.ts";

const names = async (connection: DriverConnection): Promise<number> => {
  const { rows } = await connection.query<{ n: number }>(
    "select count(*)::int as n from pg_prepared_statements where statement like 'select $%'",
  );
  return rows[0]?.n ?? -1;
};

async function transaction(
  connection: DriverConnection,
  text: string,
  values: readonly unknown[],
): Promise<unknown> {
  void connection.query("begin");
  const { rows } = await connection.query(text, values);
  await connection.query("commit");
  return rows[0];
}

void test("keeps a statement that comes again prepared across transactions, and counts it once", async (t) => {
  const { pool } = await testDatabase(t, { max: 1 });
  const driver = pgDriver(pool);
  for (let i = 0; i < 5; i++) {
    const connection = await driver.connect(5_000);
    assert.deepEqual(await transaction(connection, "select $1::int as n", [i]), { n: i });
    assert.equal(await names(connection), i === 0 ? 0 : 1);
    connection.release();
  }
});

void test("two drivers on one pool do not use each other's names", async (t) => {
  const { pool } = await testDatabase(t, { max: 1 });
  const drivers = [pgDriver(pool), pgDriver(pool)];
  for (let i = 0; i < 4; i++) {
    for (const [n, driver] of drivers.entries()) {
      const connection = await driver.connect(5_000);
      const text = n === 0 ? "select $1::int as n" : "select $1::text as t";
      assert.deepEqual(await transaction(connection, text, [i]), n === 0 ? { n: i } : { t: String(i) });
      connection.release();
    }
  }
});

void test("a statement that was parsed in a group that failed is parsed again", async (t) => {
  const { pool } = await testDatabase(t, { max: 1 });
  const connection = await pgDriver(pool).connect(5_000);
  const text = "select $1::int as n";
  await transaction(connection, text, [0]);
  await connection.query("begin");
  // The parse of the second text is skipped by the server after the first one's error.
  const answers = await Promise.allSettled([
    connection.query("select 1 / $1::int", [0]),
    connection.query(text, [1]),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    ["rejected", "rejected"],
  );
  await connection.query("rollback");
  for (let i = 0; i < 3; i++) assert.deepEqual(await transaction(connection, text, [i]), { n: i });
  connection.release();
});

void test("keeps a bounded number of statements", async (t) => {
  const { pool } = await testDatabase(t, { max: 1 });
  const connection = await pgDriver(pool).connect(5_000);
  for (let round = 0; round < 3; round++) {
    await connection.query("begin");
    for (let i = 0; i < 100; i++) await connection.query(`select $1::int + ${i} as n`, [1]);
    await connection.query("commit");
  }
  assert.ok((await names(connection)) <= 64);
  connection.release();
});

void test("prepares nothing behind a pooler, nor where it is told not to", async (t) => {
  const { pool } = await testDatabase(t, { max: 1 });
  const told = await pgDriver(pool, { prepare: false }).connect(5_000);
  for (let i = 0; i < 4; i++) await transaction(told, "select $1::int as n", [i]);
  assert.equal(await names(told), 0);
  told.release();
  const reason = "pgbouncer is not installed (Debian: apt-get install pgbouncer)";
  if (!requireOrSkip(t, pgbouncerPath() !== undefined, reason)) return;
  const pooled = await pgDriver(await testPool(t, { url: await startPgbouncer(t, await testUrl()) })).connect(
    5_000,
  );
  for (let i = 0; i < 4; i++) await transaction(pooled, "select $1::int as n", [i]);
  assert.equal(await names(pooled), 0);
  pooled.release();
});

void test("a message survives DISCARD ALL and a changed table, uncounted", async (t) => {
  const { inbox, pool, schema } = await testInbox(t, { lanes: 1 }, { max: 1 });
  const read = async (id: string): Promise<string> => {
    const { outcome } = await inbox.process(message(id), async ({ id: own }, { tx }) => {
      await tx.query("select * from account where id = $1", [1]);
      await tx.query("insert into effect (message_id) values ($1)", [own]);
    });
    return outcome;
  };
  for (const id of ["m1", "m2", "m3"]) assert.equal(await read(id), "applied");
  await pool.query("deallocate all");
  assert.equal(await read("m4"), "applied");
  assert.equal(await read("m5"), "applied");
  assert.equal(await read("m6"), "applied");
  await pool.query("alter table account add column note text");
  assert.equal(await read("m7"), "applied");
  const { rows } = await pool.query(`select count(*)::int as n from ${schema}.attempt`);
  assert.deepEqual(rows, [{ n: 0 }]);
});
