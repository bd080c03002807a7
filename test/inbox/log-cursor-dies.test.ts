import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import test from "node:test";
import { bundle } from "../../scripts/bundle.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { testDatabase } from "../support/postgres.ts";

const last = 699;

test("readers of logs that are killed again and again: each record is applied once, those of a key in order", async (t) => {
  const { url, schema, pool } = await testDatabase(t);
  await migrate(pool, { schema });
  await pool.query("create table applied (n bigserial, log text, record int)");
  const path = await bundle(join(import.meta.dirname, "log-reader.ts"));
  const count = async (): Promise<number> =>
    Number((await pool.query<{ n: string }>("select count(*) as n from applied")).rows[0]?.n);

  for (let kills = 0; kills < 4; kills++) {
    const child = spawn(process.execPath, [path, url, schema, String(last)], { stdio: "inherit" });
    const exited = once(child, "exit");
    const before = await count();
    // In the middle of what it does, wherever that is.
    while (child.exitCode === null && (await count()) < before + 40 + kills * 40)
      await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill("SIGKILL");
    await exited;
  }
  const child = spawn(process.execPath, [path, url, schema, String(last)], { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  assert.equal(code, 0);

  for (const log of ["a", "b", "c"]) {
    const { rows } = await pool.query<{ record: number }>(
      "select record from applied where log = $1 order by n",
      [log],
    );
    const records = rows.map(({ record }) => record);
    const all = Array.from({ length: last + 1 }, (_, i) => i);
    assert.deepEqual(
      [...records].sort((a, b) => a - b),
      all,
      `log ${log}: lost none, doubled none`,
    );
    for (let key = 0; key < 7; key++) {
      const own = records.filter((record) => record % 7 === key);
      assert.deepEqual(
        own,
        [...own].sort((a, b) => a - b),
        `log ${log}, key ${key}`,
      );
    }
  }
  const { rows } = await pool.query(`select count(*)::int as n from ${schema}.pending`);
  assert.deepEqual(rows, [{ n: 0 }]);
});
