import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { migrate, postgres, printMigrations } from "../../src/index.ts";
import { migrations } from "../../src/store/postgres/migrations/all.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { testDatabase, testPool, testUrl } from "../support/postgres.ts";

test("numbers its steps from 1 without gaps", () => {
  assert.deepEqual(
    migrations.map(({ version }) => version),
    migrations.map((_, i) => i + 1),
  );
});

test("installs once when 20 processes start at the same time", { timeout: 120_000 }, async (t) => {
  const { schema, pool, url } = await testDatabase(t);
  const name = `${schema} twenty`;
  onTestEnd(t, () => pool.query(`drop schema if exists "${name}" cascade`).then(() => undefined));
  const script = `
    import pg from "pg";
    import { migrate } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
    const pool = new pg.Pool({ connectionString: process.env.URL, max: 1 });
    console.log((await migrate(pool, { schema: process.env.SCHEMA, connectTimeoutMs: 60_000 })).applied.length);
    await pool.end();`;
  const children = Array.from({ length: 20 }, () =>
    spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
      env: { ...process.env, URL: url, SCHEMA: name },
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
  const applied = await Promise.all(
    children.map(async (child) => {
      let text = "";
      child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
      const [code] = (await once(child, "close")) as [number];
      assert.equal(code, 0);
      return Number(text);
    }),
  );
  assert.deepEqual(
    applied.sort((a, b) => a - b),
    [...Array<number>(19).fill(0), migrations.length],
  );
});

test("takes any schema name", async (t) => {
  const { pool, schema } = await testDatabase(t);
  for (const odd of [`${schema}" ; drop table x; --`, `${schema} é .$1`, `${schema}`]) {
    if (odd !== schema) {
      onTestEnd(t, () =>
        pool.query(`drop schema if exists "${odd.replaceAll('"', '""')}" cascade`).then(() => undefined),
      );
    }
    assert.equal((await migrate(pool, { schema: odd })).from, 0);
    await postgres(pool, { schema: odd }).ping();
  }
  for (const wrong of ["", "x".repeat(64), "a\0b", "\ud800"]) {
    await assert.rejects(migrate(pool, { schema: wrong }), { code: "invalid-option" });
  }
});

test("prints SQL that makes the same schema as migrate", async (t) => {
  const { pool, schema } = await testDatabase(t);
  const printed = `${schema}_p`;
  onTestEnd(t, () => pool.query(`drop schema if exists ${printed} cascade`).then(() => undefined));
  await migrate(pool, { schema });
  await pool.query(printMigrations({ schema: printed }));
  const shape = async (name: string): Promise<unknown[]> => {
    const { rows } = await pool.query<Record<string, unknown>>(
      `select table_name, column_name, data_type, is_nullable, collation_name from information_schema.columns
        where table_schema = $1 order by 1, ordinal_position`,
      [name],
    );
    const indexes = await pool.query<{ indexdef: string }>(
      "select indexdef from pg_indexes where schemaname = $1 order by indexname",
      [name],
    );
    return [...rows, ...indexes.rows.map(({ indexdef }) => indexdef.replaceAll(name, ""))];
  };
  assert.ok((await shape(schema)).length > 40);
  assert.deepEqual(await shape(printed), await shape(schema));
  await postgres(pool, { schema: printed }).ping();
});

test("needs no right to create schemas where the schema is there", async (t) => {
  const { pool, schema } = await testDatabase(t);
  const role = `${schema}_role`;
  await pool.query(`create role ${role} login password 'test'`);
  onTestEnd(t, async () => {
    await pool.query(`drop owned by ${role} cascade`);
    await pool.query(`drop role ${role}`);
  });
  await pool.query(`grant usage, create on schema ${schema} to ${role}`);
  const url = new URL(await testUrl());
  url.username = role;
  url.password = "test";
  const limited = await testPool(t, { url: url.href, max: 1 });
  assert.equal((await migrate(limited, { schema })).applied.length, migrations.length);
});

test("says what is wrong with a schema of another version", async (t) => {
  const { pool, schema } = await testDatabase(t);
  const store = () => postgres(pool, { schema });
  await assert.rejects(store().ping(), { code: "schema-missing", message: /Run: inbox migrate/ });
  await migrate(pool, { schema });
  await store().ping();
  await pool.query(`insert into ${schema}.migration (version, name) values (1000, 'later')`);
  await assert.rejects(store().ping(), { code: "schema-newer", message: /is at version 1000/ });
  await assert.rejects(migrate(pool, { schema }), { code: "schema-newer" });
  await pool.query(`delete from ${schema}.migration`);
  await assert.rejects(store().ping(), {
    code: "schema-outdated",
    message: /is at version 0, this release needs/,
  });
});

test("rolls a failing step back whole and gives the connection back", async (t) => {
  const { pool, schema } = await testDatabase(t);
  await pool.query("create table quarantine (something int)");
  await assert.rejects(migrate(pool, { schema }), { code: "42P07" });
  const { rows } = await pool.query(
    "select table_name from information_schema.tables where table_schema = $1",
    [schema],
  );
  assert.deepEqual(rows, [{ table_name: "quarantine" }]);
  await pool.query("drop table quarantine");
  assert.equal((await migrate(pool, { schema })).applied.length, migrations.length);
});
