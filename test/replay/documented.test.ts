import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import test from "node:test";
import { testTopic } from "../sources/kafka/support.ts";
import { createInbox } from "../../src/inbox/create-inbox.ts";
import { projection } from "../../src/replay/policy.ts";
import { runHere } from "../cli/in-process.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { exampleDatabase, examplesOf, runExample } from "../support/run-example.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";

const root = resolve(import.meta.dirname, "../..");
const page = "docs/replay.md";
const text = readFileSync(join(root, page), "utf8");
const [fix = "", example = "", kafkaExample = ""] = examplesOf(page);

const payments = [1, 2, 3, 4, 5].map((n) => ({ id: `p-${n}`, account: "a", amount: n }));
const lines = payments.map((one) => `${JSON.stringify(one)}\n`).join("");

const balances = `
export default async (message, { tx }) => {
  await tx.query("insert into payment_view (id) values ($1)", [message.id]);
};
`;

test("every command of docs/replay.md does what the page says", async (t) => {
  const { pool, url, schema } = await exampleDatabase(t);
  await pool.query("create table payment_view (id text)");
  const directory = mkdtempSync(join(tmpdir(), "inbox-replay-docs-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, "payments.ndjson"), lines);
  writeFileSync(join(directory, "fix.ts"), fix);
  writeFileSync(join(directory, "balances.ts"), balances);
  const store = postgres(pool, { schema });
  for (const [consumer, handlerVersion, count] of [
    ["accounting", "2", 3],
    ["accounting", "3", 5],
    [projection("balances", 2), "1", 5],
  ] as const) {
    const inbox = createInbox({ store, consumer, handlerVersion });
    await inbox.processBatch(
      payments.slice(0, count).map((one) => ({ producer: "shop", id: one.id, payload: JSON.stringify(one) })),
      () => undefined,
    );
  }
  const databaseUrl = new URL(url);
  databaseUrl.searchParams.set("options", `-c search_path=${schema}`);
  const back = process.cwd();
  process.chdir(directory);
  onTestEnd(t, () => process.chdir(back));
  const commands = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)]
    .flatMap(([, block = ""]) => block.split("\n"))
    .filter((line) => line !== "");
  assert.equal(commands.length, 7);
  const outputs: string[] = [];
  for (const line of commands) {
    const [, ...args] = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(
      ([, quoted, word]) => quoted ?? word ?? "",
    );
    const { code, stdout, stderr } = await runHere([...args, "--schema", schema], {
      env: { DATABASE_URL: databaseUrl.href },
    });
    assert.equal(code, 0, `${line}\n${stdout}${stderr}`);
    outputs.push(stdout + stderr);
  }
  const [each = "", plan = "", run = "", list = ""] = outputs;
  assert.match(each, /compensate +│ +5 /);
  assert.match(plan, /would run +3/);
  assert.match(plan, /left out +2 other-version/);
  assert.match(run, /3 applied/);
  assert.match(list, /accounting#rounding-2030/);
  const { rows } = await pool.query<{ balance: string }>("select balance from account");
  assert.deepEqual(rows, [{ balance: "2" }], "the odd amounts of version 2");
});

test("the example of docs/replay.md rebuilds a view", async (t) => {
  const database = await exampleDatabase(t);
  const { pool, schema } = database;
  await pool.query("create table payment_view (id text)");
  const directory = mkdtempSync(join(tmpdir(), "inbox-replay-docs-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "payments.ndjson");
  writeFileSync(file, lines);
  const source = example
    .replaceAll('"transactional-inbox/replay"', JSON.stringify(join(root, "src/replay/replay.ts")))
    .replace("{ policy, source });", `{ policy, source, schema: ${JSON.stringify(schema)} });`)
    .replace("replay(pool, {", `replay(pool, { schema: ${JSON.stringify(schema)},`);
  const output = await runExample(t, database, "replay", `${source}\nawait pool.end();`, { FILE: file });
  assert.equal(output, "5 0\ndone 5 0\n");
  assert.equal((await pool.query("select from payment_view")).rowCount, 5);
});

test("the Kafka example of docs/replay.md brings a projection up to date", async (t) => {
  const at = await testTopic(t);
  if (at === undefined) return;
  await at.publish(["a", "b", "c"].map((id) => ({ id, key: "a" })));
  const database = await exampleDatabase(t);
  await database.pool.query("create table balances_v3 (account text primary key, payments int)");
  await database.pool.query("insert into balances_v3 values ('a', 0)");
  const source = kafkaExample
    .replaceAll('"transactional-inbox/replay"', JSON.stringify(join(root, "src/replay/replay.ts")))
    .replaceAll('"transactional-inbox/kafka"', JSON.stringify(join(root, "src/sources/kafka/kafka.ts")))
    .replace("2030-01-01", "2001-01-01")
    .replace("replay(pool, {", `replay(pool, { schema: ${JSON.stringify(database.schema)},`);
  await runExample(t, database, "replay", `${source}\nawait pool.end();`, {
    KAFKA_BROKERS: at.brokers.join(","),
    TOPIC: at.topic,
  });
  const { rows } = await database.pool.query("select payments from balances_v3");
  assert.deepEqual(rows, [{ payments: 3 }]);
});
