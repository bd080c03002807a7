import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import test, { type TestContext } from "node:test";
import { promisify } from "node:util";
import { migrate } from "../../../src/index.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { testDatabase, type TestDatabase } from "../../support/postgres.ts";
import { testQueue } from "./support.ts";

const root = resolve(import.meta.dirname, "../../..");
const document = readFileSync(join(root, "docs/sqs.md"), "utf8");
const examples = [...document.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, text = ""]) => text);

async function accounts(t: TestContext): Promise<TestDatabase> {
  const database = await testDatabase(t);
  await migrate(database.pool, { schema: database.schema });
  await database.pool.query("create table account (id text primary key, balance bigint not null default 0)");
  await database.pool.query("insert into account (id) values ('a')");
  return database;
}

/** Runs an example as a user would have it, with more behind it. */
async function runExample(
  t: TestContext,
  { schema, url }: TestDatabase,
  example: string,
  more: string,
  env: Record<string, string>,
): Promise<void> {
  const directory = join(root, ".cache", "docs", `sqs-${schema}`);
  mkdirSync(directory, { recursive: true });
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  const path = (name: string): string => JSON.stringify(join(root, name));
  const file = join(directory, "example.ts");
  writeFileSync(
    file,
    `${example}\n${more}`
      .replaceAll('"transactional-inbox"', path("src/index.ts"))
      .replaceAll('"transactional-inbox/sqs"', path("src/sources/sqs/sqs.ts"))
      .replaceAll("postgres(pool)", `postgres(pool, { schema: ${JSON.stringify(schema)} })`),
  );
  const databaseUrl = new URL(url);
  databaseUrl.searchParams.set("options", `-c search_path=${schema}`);
  await promisify(execFile)(process.execPath, ["--import", "tsx", file], {
    cwd: root,
    timeout: 60_000,
    env: { ...process.env, ...env, DATABASE_URL: databaseUrl.href },
  });
}

const payment = JSON.stringify({ eventId: "e1", account: "a", amount: 5 });

test("the process of docs/sqs.md applies a payment once, as it says", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const database = await accounts(t);
  await queue.send([payment, payment]);
  const { region, endpoint, credentials } = queue.facts;
  const stop = `
    while (run.stats().settled < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    process.kill(process.pid, "SIGTERM");
    await run.finished;
    await pool.end();`;
  await runExample(t, database, examples[0]!, stop, {
    ...{ QUEUE_URL: queue.queueUrl, AWS_REGION: region, AWS_ENDPOINT_URL_SQS: endpoint },
    ...{ AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey },
  });
  const { rows } = await database.pool.query("select balance::int from account");
  assert.deepEqual(rows, [{ balance: 5 }]);
  await queue.empty();
});

test("the Lambda function of docs/sqs.md applies a payment once and names what is not done", async (t) => {
  const database = await accounts(t);
  const eventSourceARN = "arn:aws:sqs:eu-central-1:123456789012:payments";
  const records = [payment, payment, '{"eventId":"e2","account":"a","amount":"many"}'].map((body, i) => ({
    ...{ messageId: `m${i}`, body, attributes: {}, messageAttributes: {}, eventSourceARN },
  }));
  const call = `
    import assert from "node:assert/strict";
    const event = ${JSON.stringify({ Records: records })};
    const answer = await handler(event, { getRemainingTimeInMillis: () => 30_000 });
    assert.deepEqual(answer, { batchItemFailures: [{ itemIdentifier: "m2" }] });
    await pool.end();`;
  await runExample(t, database, examples[1]!, call, {});
  const { rows } = await database.pool.query("select balance::int from account");
  assert.deepEqual(rows, [{ balance: 5 }]);
});

test("docs/sqs.md names every option and the limits that the source has", () => {
  for (const name of ["client", "queueUrl", "identity", "tenant", "receivers", "visibilityTimeoutMs"]) {
    assert.match(document, new RegExp(`^\\| \`${name}\` \\|`, "m"));
  }
  assert.match(document, /`receivers` \| 8 /);
  assert.match(document, /warns below 10/);
  assert.equal(examples.length, 2);
});
