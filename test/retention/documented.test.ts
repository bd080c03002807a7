import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { retentionPlan } from "../../src/retention/retention.ts";
import { ledgerCase } from "../reconcile/ledger-case.ts";
import { examplesOf, runExample } from "../support/run-example.ts";

const root = join(import.meta.dirname, "../..");
const page = "docs/retention.md";

test("the example of docs/retention.md plans", async (t) => {
  const database = await ledgerCase(t);
  const [example = ""] = examplesOf(page);
  const source = example
    .replaceAll('"transactional-inbox/retention"', JSON.stringify(join(root, "src/retention/retention.ts")))
    .replace("measureLedger(pool)", `measureLedger(pool, { schema: ${JSON.stringify(database.schema)} })`);
  assert.equal(
    await runExample(t, database, "retention", `${source}\nawait pool.end();`, {}),
    "restore 10 4\n",
  );
});

test("docs/retention.md has a row for each scenario", () => {
  const text = readFileSync(join(root, page), "utf8");
  const dead = { name: "d", retentionMs: 1, startsAnew: true };
  const { scenarios } = retentionPlan({
    brokers: [{ name: "l", kind: "log", retentionMs: 1, deadLetter: dead }],
  });
  const named = [...text.matchAll(/^\| ([a-z -]+?) +\| /gm)].map(([, name]) => name);
  for (const { name } of scenarios) assert.ok(named.includes(name), name);
});
