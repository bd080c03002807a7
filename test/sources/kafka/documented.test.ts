import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";
import { extraClient, extraClientDirectory } from "../../services/kafka-clients.ts";
import { exampleDatabase, examplesOf, followedBy, runExample } from "../../support/run-example.ts";
import { assertCommitted, testTopic } from "./support.ts";

const [process_ = "", kafkajs = "", , byCursor = ""] = examplesOf("docs/kafka.md");
const value = JSON.stringify({ account: "a", amount: 5 });

// Behind an example: waits until both deliveries have their outcome, then stops as SIGTERM would.
const untilTwo = `
  while (run.stats().settled < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  const { outcomes } = await run.stop();
  console.log(outcomes.applied, outcomes.duplicate);
  await pool.end();`;

test("the process of docs/kafka.md applies a payment once, as it says", async (t) => {
  const at = await testTopic(t);
  if (at === undefined || (await extraClient(t, "confluent")) === undefined) return;
  const database = await exampleDatabase(t);
  await at.publish([
    { id: "e1", key: "a", value },
    { id: "e1", key: "a", value },
  ]);
  const env = { KAFKA_BROKERS: at.brokers.join(","), TOPIC: at.topic };
  const require = createRequire(join(extraClientDirectory("confluent"), "package.json"));
  const example = process_
    .replace(
      '"@confluentinc/kafka-javascript"',
      JSON.stringify(require.resolve("@confluentinc/kafka-javascript")),
    )
    .replace('groupId: "accounting"', `groupId: ${JSON.stringify(at.groupId)}`);
  assert.equal(await runExample(t, database, "kafka", followedBy(example, untilTwo), env), "1 1\n");
  const { rows } = await database.pool.query("select balance::int as balance from account");
  assert.deepEqual(rows, [{ balance: 5 }]);
  await assertCommitted(at, 2);
});

test("the source of docs/kafka.md with kafkajs hands a record over", async (t) => {
  const at = await testTopic(t);
  if (at === undefined) return;
  const database = await exampleDatabase(t);
  await at.publish([{ id: "e1", value }]);
  const rest = `
    const id = await new Promise((resolve, reject) => {
      source.start({
        facts: { consumer: "c", lanes: 1, maxInHand: 10, maxInHandBytes: 1e6, handlerTimeoutMs: 1e3, extendEveryMs: 1e4 },
        deliver: async ([{ received }]) => resolve(received.id), warn: console.error, end: reject,
      }).catch(reject);
    });
    await source.stop();
    await source.close();
    console.log(id);`;
  const env = { KAFKA_BROKERS: at.brokers.join(","), TOPIC: at.topic };
  const example = kafkajs.replace('groupId: "accounting"', `groupId: ${JSON.stringify(at.groupId)}`);
  // kafkajs writes its log to the same place.
  const lines = (await runExample(t, database, "kafka", example + rest, env)).trim().split("\n");
  assert.equal(lines.at(-1), "e1");
});

test("the source of docs/kafka.md with a cursor applies each record once, also for another group", async (t) => {
  const at = await testTopic(t);
  if (at === undefined || (await extraClient(t, "confluent")) === undefined) return;
  const database = await exampleDatabase(t);
  await at.publish([{ value }, { value }]);
  const rest = `
    import pg from "pg";
    import { createInbox, postgres } from "transactional-inbox";
    const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
    const run = createInbox({ store: postgres(pool), consumer: "accounting" }).run(source, async (message, { tx }) => {
      await tx.query("update account set balance = balance + $1 where id = 'a'", [message.json().amount]);
    });
    const done = () => pool.query("select applied::int as applied from log_owner").then(({ rows }) => rows[0]?.applied === 1);
    while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 10));
    const { outcomes } = await run.stop();
    console.log(outcomes.applied);
    await pool.end();`;
  const require = createRequire(join(extraClientDirectory("confluent"), "package.json"));
  const env = { KAFKA_BROKERS: at.brokers.join(","), TOPIC: at.topic };
  const as = (groupId: string): string =>
    byCursor
      .replace(
        '"@confluentinc/kafka-javascript"',
        JSON.stringify(require.resolve("@confluentinc/kafka-javascript")),
      )
      .replace('groupId: "accounting"', `groupId: ${JSON.stringify(groupId)}`) + rest;
  assert.equal(await runExample(t, database, "kafka", as(at.groupId), env), "2\n");
  assert.equal(await runExample(t, database, "kafka", as(`${at.groupId}-2`), env), "0\n");
  const { rows } = await database.pool.query("select balance::int as balance from account");
  assert.deepEqual(rows, [{ balance: 10 }]);
});
