import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { retentionPlan } from "../../src/retention/retention.ts";
import { runHere } from "../cli/in-process.ts";
import { hoursAgo, ledgerCase } from "../reconcile/ledger-case.ts";
import { examplesOf, runExample } from "../support/run-example.ts";
import { caughtUp } from "./cleanup-case.ts";

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

test("the example of forgetting runs", async (t) => {
  const database = await ledgerCase(t);
  const example = examplesOf(page).find((text) => text.includes("createCleanup")) ?? "";
  const source = example
    .replaceAll('"transactional-inbox/retention"', JSON.stringify(join(root, "src/retention/retention.ts")))
    .replaceAll(
      /postgres\((pool|new pg\.Pool\(.*?\}\))\)/g,
      `postgres($1, { schema: "${database.schema}" })`,
    );
  await runExample(t, database, "forgetting", `${source}\nprocess.exit(0);`, {});
  const { rows } = await database.pool.query("select source from source_clock");
  assert.deepEqual(rows, [{ source: "orders" }]);
});

test("the commands of docs/retention.md do what the page says", async (t) => {
  const { url, schema, pool, fill } = await ledgerCase(t);
  await fill([
    { id: "order-17", producer: "shop", at: hoursAgo(24 * 20) },
    { id: "order-18", producer: "shop", at: hoursAgo(24 * 15) },
    { id: "order-19", producer: "shop", at: hoursAgo(1) },
  ]);
  for (const source of ["kafka:payments-v1", "kafka:payments-v2"]) {
    await caughtUp(pool, { source, sinceHours: 24 * 30 });
  }
  await pool.query("update source_clock set advanced_at = null where source = 'kafka:payments-v1'");
  const text = readFileSync(join(root, page), "utf8");
  const blocks = [...text.slice(text.indexOf("## Forgetting")).matchAll(/^```sh\n([\s\S]*?)^```/gm)];
  const commands = blocks.flatMap(([, block = ""]) => block.trim().split("\n"));
  const said: string[] = [];
  for (const command of commands) {
    const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "");
    const once = words[2] === "run" ? ["--once"] : [];
    const { code, stdout, stderr } = await runHere([...words.slice(1), ...once, "--schema", schema], {
      env: { DATABASE_URL: url },
    });
    said.push(`${code} ${stdout}${stderr}`);
  }
  const [window, run, status, retire, tried, erased] = said;
  assert.equal(said.length, 6);
  assert.match(window!, /^0 [^]*accounting are kept for 14d/);
  assert.match(run!, /^3 [^]*Nothing of accounting is forgotten: waits for kafka:payments-v1/);
  assert.match(status!, /^3 [^]*has not caught up/);
  assert.match(retire!, /^0 /);
  for (const erasure of [tried!, erased!]) assert.match(erasure, /^0 No body of order-17 is kept/);
  const again = await runHere(["retention", "run", "--once", "--schema", schema], {
    env: { DATABASE_URL: url },
  });
  assert.match(again.stderr, /2 identities forgotten/);
});
