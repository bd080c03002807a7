import assert from "node:assert/strict";
import test from "node:test";
import { testDatabase } from "../support/postgres.ts";
import { runInbox } from "./run-inbox.ts";

interface Migrated {
  readonly schema: string;
  readonly from: number;
  readonly to: number;
  readonly applied: readonly string[];
}

const columnsOf = `
  select table_name, column_name, data_type, is_nullable, column_default is not null as has_default
  from information_schema.columns where table_schema = $1 order by 1, 2`;

test("migrate creates the tables, and a second run finds nothing to do", async (t) => {
  const { url, schema } = await testDatabase(t);
  const args = ["migrate", "--schema", schema, "--json"];
  const first = await runInbox(args, { env: { DATABASE_URL: url } });
  assert.equal(first.code, 0, first.stderr);
  const created = JSON.parse(first.stdout) as Migrated;
  assert.deepEqual([created.schema, created.from], [schema, 0]);
  assert.ok(created.applied.length > 0);

  const second = await runInbox(args, { env: { DATABASE_URL: url } });
  assert.deepEqual(JSON.parse(second.stdout), { schema, from: created.to, to: created.to, applied: [] });
  assert.match(second.stderr, /already/);
  assert.doesNotMatch(first.stderr + second.stderr, new RegExp(new URL(url).password || "no password"));
});

test("libpq's variables name the database as well as DATABASE_URL does", async (t) => {
  const { url, schema } = await testDatabase(t);
  const { hostname, port, username, password, pathname } = new URL(url);
  const { code, stderr } = await runInbox(["migrate", "--schema", schema], {
    env: {
      PGHOST: hostname,
      PGPORT: port || "5432",
      PGUSER: decodeURIComponent(username),
      PGPASSWORD: decodeURIComponent(password),
      PGDATABASE: pathname.slice(1),
    },
  });
  assert.equal(code, 0, stderr);
});

test("the printed SQL makes the same tables, and migrate then finds nothing to do", async (t) => {
  const migrated = await testDatabase(t);
  const env = { DATABASE_URL: migrated.url };
  assert.equal((await runInbox(["migrate", "--schema", migrated.schema], { env })).code, 0);

  const printed = await testDatabase(t);
  const { code, stdout, stderr } = await runInbox(["migrate", "--print", "--schema", printed.schema]);
  assert.deepEqual([code, stderr], [0, ""]);
  await printed.pool.query(stdout);
  const [expected, actual] = await Promise.all(
    [migrated, printed].map(({ pool, schema }) => pool.query(columnsOf, [schema])),
  );
  assert.ok(expected!.rowCount! > 0);
  assert.deepEqual(actual!.rows, expected!.rows);
  const again = await runInbox(["migrate", "--schema", printed.schema, "--json"], { env });
  assert.deepEqual((JSON.parse(again.stdout) as Migrated).applied, []);
});

test("a schema of a later release is refused, with advice", async (t) => {
  const { url, schema, pool } = await testDatabase(t);
  const env = { DATABASE_URL: url };
  await runInbox(["migrate", "--schema", schema], { env });
  await pool.query(`insert into ${schema}.migration (version, name) values (1000, 'later')`);
  const { code, stderr } = await runInbox(["migrate", "--schema", schema], { env });
  assert.equal(code, 1);
  assert.match(stderr, /version 1000.*Update transactional-inbox/);
});
