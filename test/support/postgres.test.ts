import assert from "node:assert/strict";
import test from "node:test";
import { testDatabase, testPool, testUrl } from "./postgres.ts";

test("a test's schema is its own and is dropped after the test", async (t) => {
  let schema = "";
  await t.test("inside", async (inner) => {
    const database = await testDatabase(inner);
    schema = database.schema;
    await database.pool.query("create table account (id int)");
    const { rows } = await database.pool.query(
      "select 'account'::regclass::text as name, current_schema() as schema",
    );
    assert.deepEqual(rows, [{ name: "account", schema }]);
  });
  const pool = await testPool(t);
  const { rowCount } = await pool.query("select from pg_namespace where nspname = $1", [schema]);
  assert.equal(rowCount, 0);
});

test("the server is real: it forces its log to the disk", async (t) => {
  const pool = await testPool(t);
  const { rows } = await pool.query<{ fsync: string }>("show fsync");
  assert.equal(rows[0]?.fsync, "on");
  assert.match(await testUrl(), /^postgres(ql)?:/);
});
