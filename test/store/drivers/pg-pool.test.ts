import assert from "node:assert/strict";
import { test } from "node:test";
import { pgDriver } from "../../../src/store/postgres/drivers/pg.ts";
import { testDatabase } from "../../support/postgres.ts";

void test("adds one error listener to a pool, however many drivers are made", async (t) => {
  const { pool } = await testDatabase(t);
  const before = pool.listenerCount("error");
  for (let i = 0; i < 5; i++) pgDriver(pool);
  assert.equal(pool.listenerCount("error"), before + 1);
});

void test("leaves no listener of its own on a client that went back to the pool", async (t) => {
  const { pool } = await testDatabase(t, { max: 1 });
  const driver = pgDriver(pool);
  const counts = async () => {
    const client = await pool.connect();
    const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
    const count = [
      client.listenerCount("error"),
      client.listenerCount("end"),
      connection.listenerCount("readyForQuery"),
    ];
    client.release();
    return count;
  };
  const before = await counts();
  for (let i = 0; i < 20; i++) {
    const connection = await driver.connect(1_000);
    await connection.query("select $1::int", [i]);
    connection.release();
  }
  assert.deepEqual(await counts(), before);
});

void test("never hands out a client that came back inside an open transaction", async (t) => {
  const { pool } = await testDatabase(t, { max: 1 });
  const careless = await pool.connect();
  await careless.query("begin");
  careless.release();
  const connection = await pgDriver(pool).connect(5_000);
  assert.equal(connection.status(), "idle");
  connection.release();
});

void test("names last to the end of the transaction at most, and old ones hurt nobody", async (t) => {
  const { pool } = await testDatabase(t, { max: 1 });
  const connection = await pgDriver(pool, { prepare: true }).connect(5_000);
  const names = async () =>
    (await connection.query("select name from pg_prepared_statements order by name")).rows.length;
  const alternate = () =>
    Promise.all(
      [0, 1, 2, 3, 4].flatMap((n) => [
        connection.query("select $1::int as n", [n]),
        connection.query("select $1::text as t", [`t${n}`]),
      ]),
    );
  for (let round = 0; round < 3; round++) {
    await connection.query("begin");
    const answers = await alternate();
    assert.deepEqual(
      answers.map(({ rows }) => rows[0]),
      [0, 1, 2, 3, 4].flatMap((n) => [{ n }, { t: `t${n}` }]),
    );
    assert.ok((await names()) > 0);
    if (round === 1) {
      // After an error nothing is closed in its group; the next holder of a name closes the old one.
      await Promise.allSettled([
        ...[0, 1].map(() => connection.query("select $1::int as n", [1])),
        connection.query("select 1 / $1::int", [0]),
      ]);
      await connection.query("rollback");
      continue;
    }
    await connection.query("commit");
    if (round === 0) assert.equal(await names(), 0);
  }
  connection.release();
});

void test("a burst on a pool without pipeline draws no deprecation warning", async (t) => {
  const { pool } = await testDatabase(t, { pipeline: false });
  const warnings: Error[] = [];
  const listen = (warning: Error) => warnings.push(warning);
  process.on("warning", listen);
  t.after(() => process.off("warning", listen));
  const connection = await pgDriver(pool).connect(5_000);
  void connection.query("begin");
  const burst = Array.from({ length: 50 }, (_, n) => connection.query("select $1::int as n", [n]));
  void connection.query("commit");
  const answers = await Promise.all(burst);
  assert.deepEqual(
    answers.map(({ rows }) => rows[0]),
    Array.from({ length: 50 }, (_, n) => ({ n })),
  );
  await connection.query("select 1");
  connection.release();
  assert.deepEqual(warnings, []);
});

void test("reads values with the parsers the user gave the pool", async (t) => {
  const types = {
    getTypeParser: (id: number) => (id === 20 ? (text: string) => BigInt(text) : (text: string) => text),
  };
  const { pool } = await testDatabase(t, { types: types });
  const connection = await pgDriver(pool).connect(5_000);
  assert.deepEqual(
    (await connection.query("select $1::bigint as v", ["12345678901234567890".slice(0, 18)])).rows,
    [{ v: 123456789012345678n }],
  );
  connection.release();
});
