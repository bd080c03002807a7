import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { differenceKinds } from "../../src/reconcile/difference.ts";
import { examplesOf, runExample } from "../support/run-example.ts";
import { ledgerCase } from "./ledger-case.ts";

const page = "docs/reconcile.md";
const [example = ""] = examplesOf(page);

test("the example of docs/reconcile.md finds what was not applied", async (t) => {
  const database = await ledgerCase(t);
  await database.fill([{ id: "1", payload: "a" }]);
  await database.pool.query("create table payment_sent (no bigint, body text, sent_at timestamptz)");
  await database.pool.query(
    "insert into payment_sent values (1, 'a', now() - interval '1 hour'), (2, 'b', now() - interval '1 hour')",
  );
  const source = example
    .replace("reconcile(pool, {", `reconcile(pool, { schema: ${JSON.stringify(database.schema)},`)
    .replace("2026-11-01T00:00:00Z", "2020-01-01T00:00:00Z");
  const output = await runExample(t, database, "reconcile", `${source}\nawait pool.end();`, {});
  assert.equal(output, "missing 2\n2 1 1\n");
});

test("docs/reconcile.md explains every kind of difference, and its index is one that PostgreSQL makes", async (t) => {
  const text = readFileSync(join(import.meta.dirname, "../..", page), "utf8");
  const explained = [...text.matchAll(/^\| `([a-z]+)` \|/gm)].map(([, kind]) => kind);
  assert.deepEqual(explained.sort(), [...differenceKinds].sort());
  const [, sql = ""] = /```sql\n([\s\S]*?)```/.exec(text) ?? [];
  const { pool, schema, fill, compare } = await ledgerCase(t);
  await pool.query(sql.replace("inbox.message", `${schema}.message`));
  await fill([{ id: "a" }]);
  const { report } = await compare({
    producers: ["payments"],
    sent: { name: "none", open: async () => ({ read: async function* () {}, close: async () => undefined }) },
  });
  assert.equal(report.differences.extra, 1);
});
