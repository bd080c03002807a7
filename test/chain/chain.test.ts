import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { killsIn, type PlayResult } from "../../examples/two-services/play/result.ts";

const tsx = fileURLToPath(import.meta.resolve("tsx"));

const run = (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; stdout: string; stderr: string }> =>
  new Promise((resolve) => {
    const command = ["--import", tsx, join(import.meta.dirname, "main.ts"), ...args];
    execFile(process.execPath, command, { env: { ...process.env, ...env } }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });

test("from database to database, everything killed at points of its work: sent under one id, applied once, in order", async () => {
  const { code, stdout, stderr } = await run(["--kills", "15", "--seed", "7", "--broker", "none", "--json"]);
  assert.equal(code, 0, stderr);
  const { violations, orders, entries, receipts, kills } = JSON.parse(stdout) as PlayResult;
  assert.deepEqual(violations, []);
  assert.deepEqual([entries, receipts], [orders, orders]);
  assert.equal(killsIn(kills), 15);
  assert.ok(Object.keys(kills).some((where) => where.startsWith("PostgreSQL")));
  const aimed = Object.keys(kills).filter((where) => !where.endsWith("any time"));
  assert.ok(aimed.length >= 3, `killed at ${JSON.stringify(kills)}`);
});

test("refuses options it does not know, and says how it is used", async () => {
  for (const args of [
    ["--kills", "none"],
    ["--kill", "3"],
    ["--kills", "0"],
    ["--broker", "none of them"],
  ]) {
    const { code, stdout, stderr } = await run(args);
    assert.equal(code, 2);
    assert.equal(stdout, "");
    assert.match(stderr, /Usage: npm run chain/);
  }
});
