import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import test from "node:test";
import { exampleDatabase, examplesOf, followedBy, runExample } from "../../support/run-example.ts";
import { testQueue } from "./support.ts";

const document = readFileSync(join(resolve(import.meta.dirname, "../../.."), "docs/sqs.md"), "utf8");
const examples = examplesOf("docs/sqs.md");
const [process_ = "", lambda = ""] = examples;
const payment = JSON.stringify({ eventId: "e1", account: "a", amount: 5 });

test("the process of docs/sqs.md applies a payment once, as it says", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const database = await exampleDatabase(t);
  await queue.send([payment, payment]);
  const { region, endpoint, credentials } = queue.facts;
  const stop = `
    while (run.stats().settled < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    process.kill(process.pid, "SIGTERM");
    await run.finished;
    await pool.end();`;
  await runExample(t, database, "sqs", followedBy(process_, stop), {
    ...{ QUEUE_URL: queue.queueUrl, AWS_REGION: region, AWS_ENDPOINT_URL_SQS: endpoint },
    ...{ AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey },
  });
  const { rows } = await database.pool.query("select balance::int from account");
  assert.deepEqual(rows, [{ balance: 5 }]);
  await queue.empty();
});

test("the Lambda function of docs/sqs.md applies a payment once and names what is not done", async (t) => {
  const database = await exampleDatabase(t);
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
  await runExample(t, database, "sqs", lambda + call, {});
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
