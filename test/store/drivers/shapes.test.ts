import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import { drizzle } from "drizzle-orm/node-postgres";
import { sql as drizzleSql } from "drizzle-orm";
import knex from "knex";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { InboxError } from "../../../src/errors.ts";
import type { Tx } from "../../../src/store/statement.ts";
import { driverFor } from "../../../src/store/postgres/drivers/detect.ts";
import { userTransaction } from "../../../src/store/postgres/drivers/user-transaction.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { testDatabase, testUrl } from "../../support/postgres.ts";
import { postgresJsClient } from "./subject.ts";

const wrong = (says: RegExp) => (error: unknown) =>
  error instanceof InboxError && error.code === "invalid-option" && says.test(error.message);
const noTransaction = (says: RegExp) => (error: unknown) =>
  error instanceof InboxError && error.code === "not-a-transaction" && says.test(error.message);

void test("picks the driver by what it is given", async (t) => {
  const { pool } = await testDatabase(t);
  assert.equal(driverFor(pool).name, "pg");
  assert.equal(driverFor(postgresJsClient(t, await testUrl())).name, "postgres");
});

void test("says what was given instead of a pool, and what to give", async (t) => {
  const { pool } = await testDatabase(t);
  const client = await pool.connect();
  onTestEnd(t, () => client.release());
  const sql = postgresJsClient(t, await testUrl());
  const reserved = await sql.reserve();
  onTestEnd(t, () => reserved.release());
  const knexOne = knex({ client: "pg" });
  const secret = "postgres://u:secret@host/db";
  const cases: [unknown, RegExp][] = [
    [undefined, /given undefined/],
    [null, /given null/],
    [42, /given number/],
    [{}, /given an object/],
    [[], /given an array/],
    [new (class Thing {})(), /object of class Thing/],
    [Object.create(null), /given an object/],
    [() => 1, /given a function/],
    [new pg.Client(), /single pg client.*Pool/],
    [client, /single pg client.*Pool/],
    [reserved, /reserved connection of postgres\.js.*sql/],
    [new Kysely({ dialect: new PostgresDialect({ pool }) }), /Kysely.*PostgresDialect/],
    [drizzle(pool), /Drizzle.*\$client/],
    [knexOne, /Knex.*Pool/],
    [secret, /given a string.*connectionString/],
  ];
  for (const [given, says] of cases) assert.throws(() => driverFor(given), wrong(says));
  assert.throws(
    () => driverFor(secret),
    (error: Error) => !error.message.includes("secret"),
  );
  await knexOne.destroy();
});

void test("refuses clients of postgres.js that cannot serve", async (t) => {
  const url = await testUrl();
  const toCamel = { transform: { column: { from: (name: string) => name.toUpperCase() } } };
  assert.throws(() => driverFor(postgresJsClient(t, url, toCamel)), wrong(/transform/));
  assert.throws(() => driverFor(postgresJsClient(t, url, { fetch_types: false })), wrong(/fetch_types/));
});

void test("refuses as a transaction what is none", async (t) => {
  const { pool } = await testDatabase(t);
  const sql = postgresJsClient(t, await testUrl());
  const cases: [unknown, RegExp][] = [
    [pool, /a pool.*BEGIN/],
    [sql, /postgres\.js client itself.*sql\.begin/],
    [new Kysely({ dialect: new PostgresDialect({ pool }) }), /Kysely/],
    [drizzle(pool), /Drizzle/],
    [undefined, /undefined/],
    [{}, /an object/],
    ["begin", /a string/],
  ];
  for (const [given, says] of cases) assert.throws(() => userTransaction(given), noTransaction(says));
  const odd = userTransaction({ query: async () => [] });
  await assert.rejects(odd.query("select 1"), noTransaction(/rows is no array/));
});

void test("a pg client is a transaction with a status", async (t) => {
  const { pool } = await testDatabase(t);
  const client = await pool.connect();
  onTestEnd(t, () => client.release(true));
  client.on("error", () => undefined);
  const tx = userTransaction(client);
  await client.query("begin");
  assert.equal(tx.status?.(), "open");
  assert.deepEqual(await tx.query("select $1::int as n", [1]), { rows: [{ n: 1 }], rowCount: 1 });
  await assert.rejects(tx.query("select 1 / $1::int", [0]), { code: "22012" });
  assert.notEqual(tx.status?.(), "open");
  while (tx.status?.() === "unknown") await turn();
  assert.equal(tx.status?.(), "failed");
  await client.query("rollback");
  assert.equal(tx.status?.(), "idle");
  await assert.rejects(tx.query("select 'a\0b'"), /NUL/);
  await client.query("begin");
  const ended = new Promise((resolve) => client.once("end", resolve));
  const { rows } = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
  await pool.query("select pg_terminate_backend($1)", [rows[0]?.pid]);
  await ended;
  assert.equal(tx.status?.(), "lost");
});

// The lines of docs/drivers.md, each run inside a transaction that is then rolled back, and one that is committed.
interface Case {
  readonly name: string;
  run(url: string, pool: pg.Pool, work: (tx: unknown) => Promise<void>): Promise<void>;
}

const cases: Case[] = [
  {
    name: "pg",
    async run(_url, pool, work) {
      const client = await pool.connect();
      try {
        await client.query("begin");
        await work(client);
        await client.query("commit");
      } catch (error) {
        await client.query("rollback");
        throw error;
      } finally {
        client.release();
      }
    },
  },
  {
    name: "Kysely",
    run: (_url, pool, work) =>
      new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) }).transaction().execute(async (trx) => {
        const tx: Tx = {
          query: async <Row>(text: string, values: readonly unknown[] = []) => {
            const { rows, numAffectedRows } = await trx.executeQuery<Row>(
              CompiledQuery.raw(text, [...values]),
            );
            return { rows, rowCount: Number(numAffectedRows ?? rows.length) };
          },
        };
        await work(tx);
      }),
  },
  {
    name: "Drizzle",
    run: (_url, pool, work) =>
      drizzle(pool).transaction(async (trx) => {
        // Drizzle takes text and values only as its own sql object.
        const tx: Tx = {
          query: async <Row>(text: string, values: readonly unknown[] = []) => {
            const parts = text.split(/\$(\d+)/);
            const chunks = parts.map((part, i) =>
              i % 2 === 0 ? drizzleSql.raw(part) : drizzleSql.param(values[Number(part) - 1]),
            );
            const { rows, rowCount } = await trx.execute(drizzleSql.join(chunks));
            return { rows: rows as Row[], rowCount };
          },
        };
        await work(tx);
      }),
  },
  {
    name: "Knex",
    async run(url, _pool, work) {
      const db = knex({ client: "pg", connection: url });
      try {
        await db.transaction(async (trx) => {
          // Inside a transaction Knex has one connection to give: the transaction's.
          const { client } = trx as unknown as { client: { acquireConnection(): Promise<pg.Client> } };
          await work(await client.acquireConnection());
        });
      } finally {
        await db.destroy();
      }
    },
  },
  {
    name: "postgres.js",
    async run(url, _pool, work) {
      const { default: postgres } = await import("postgres");
      const sql = postgres(url, { max: 2 });
      try {
        await sql.begin((sql) => work(sql));
      } finally {
        await sql.end({ timeout: 1 });
      }
    },
  },
];

for (const { name, run } of cases) {
  void test(`the transaction of ${name} is taken by the line in docs/drivers.md`, async (t) => {
    const { pool, schema } = await testDatabase(t);
    const table = `${schema}.entry`;
    await pool.query(`create table ${table} (id text primary key, at timestamptz)`);
    const work = (id: string) => async (given: unknown) => {
      const tx = userTransaction(given);
      const now = async () =>
        (await tx.query<{ now: string }>("select transaction_timestamp()::text as now")).rows[0]?.now;
      assert.equal(await now(), await now());
      const inserted = await tx.query(
        `insert into ${table} (id, at) select x, now() from unnest($1::text::text[]) x where x <> $2::text and $2::text is not null returning id`,
        [`{${id},other}`, "other"],
      );
      assert.deepEqual(inserted.rows, [{ id }]);
      assert.equal((await tx.query(`update ${table} set at = null where id = $1::text`, [id])).rowCount, 1);
      assert.equal((await tx.query("select null::text as x")).rows.length, 1);
    };
    const url = await testUrl();
    await run(url, pool, work("kept"));
    const failure = new Error("rolled back");
    await assert.rejects(
      run(url, pool, async (tx) => {
        await work("undone")(tx);
        throw failure;
      }),
      failure,
    );
    assert.deepEqual((await pool.query(`select id from ${table}`)).rows, [{ id: "kept" }]);
  });
}
