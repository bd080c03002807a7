import assert from "node:assert/strict";
import test from "node:test";
import { createInbox, postgres } from "../../../src/index.ts";
import { cursor, kafka, type CursorOptions } from "../../../src/sources/kafka/kafka.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import { testDatabase } from "../../support/postgres.ts";
import { createTopic } from "./create-topic.ts";
import { assertCommitted, clients, eventually, testTopic, type TestTopic } from "./support.ts";
import { chosenClients } from "../../services/kafka-clients.ts";

// The cursor strategy on the real broker.

const records = (from: number, count: number, partitions = 1) =>
  Array.from({ length: count }, (_, i) => {
    const n = from + i;
    return { key: `k${n % 5}`, value: JSON.stringify({ n }), partition: n % partitions };
  });

for (const [name, makeClient] of chosenClients(clients)) {
  // Only kafkajs cannot tell the topic's id.
  const declared = (at: TestTopic, id: string): CursorOptions =>
    name === "kafkajs" ? { topicIds: { [at.topic]: id } } : {};

  async function open(t: test.TestContext, at: TestTopic) {
    const { schema, pool } = await testDatabase(t, { max: 12 });
    await migrate(pool, { schema });
    await pool.query("create table applied (position bigserial, n int, by text)");
    return {
      pool,
      schema,
      member: async (by: string, options: CursorOptions, before: () => Promise<void> | void = () => {}) => {
        const client = await makeClient(t, at);
        if (client === undefined) return undefined;
        const source = kafka({
          ...{ client, topics: [at.topic], groupId: `${at.groupId}-${by}`, identity: cursor(options) },
          ...{ commitIntervalMs: 20, revokeTimeoutMs: 300 },
        });
        const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting", lanes: 2 });
        const run = inbox.run(source, async (message, { tx }) => {
          await before();
          const { n } = message.json() as { n: number };
          await tx.query("insert into applied (n, by) values ($1, $2)", [n, by]);
        });
        t.after(() => run.stop().catch(() => undefined));
        return { source, run };
      },
      applied: async (): Promise<number[]> =>
        (await pool.query<{ n: number }>("select n from applied order by position")).rows.map(({ n }) => n),
      messages: async (): Promise<number> =>
        Number((await pool.query<{ n: string }>(`select count(*) as n from ${schema}.message`)).rows[0]?.n),
    };
  }

  const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

  test(`${name}: another group of the same consumer goes on behind what is applied, and no record leaves a row`, async (t) => {
    const at = await testTopic(t, { numPartitions: 2 });
    if (at === undefined) return;
    const { member, applied, messages } = await open(t, at);
    await at.publish(records(0, 200, 2));
    const one = await member("one", declared(at, "first"));
    if (one === undefined) return;
    await eventually(applied, (list) => list.length >= 200);
    await one.run.stop();
    await at.publish(records(200, 100, 2));
    const two = (await member("two", declared(at, "first")))!;
    await eventually(applied, (list) => list.length >= 300);
    await assertCommitted({ ...at, committed: (p) => committed(at, `${at.groupId}-two`, p) }, 150);
    await two.run.stop();
    const list = await applied();
    assert.deepEqual(
      [...list].sort((a, b) => a - b),
      numbers(300),
      "each once",
    );
    for (const rest of [0, 1]) {
      const own = list.filter((n) => n % 2 === rest);
      assert.deepEqual(
        own,
        [...own].sort((a, b) => a - b),
        "in the order of its partition",
      );
    }
    assert.equal(await messages(), 0);
  });

  test(`${name}: a topic that was made anew is not read until somebody agrees`, async (t) => {
    const at = await testTopic(t);
    if (at === undefined) return;
    const { member, applied } = await open(t, at);
    await at.publish(records(0, 10));
    const one = await member("one", declared(at, "first"));
    if (one === undefined) return;
    await eventually(applied, (list) => list.length >= 10);
    await one.run.stop();
    await at.admin.deleteTopics({ topics: [at.topic] });
    await createTopic(at.admin, { topic: at.topic, numPartitions: 1 });
    await at.publish(records(100, 20));
    const two = (await member("two", declared(at, "second")))!;
    const error = await two.run.finished.then(
      () => undefined,
      (reason: unknown) => reason as Error,
    );
    assert.match(String(error?.message), /belongs to topic id .* agree: cursor\(\{ accept: "[^"]+" \}\)/);
    assert.equal((error?.cause as { code?: string }).code, "log-changed");
    assert.equal((await applied()).length, 10);
    const accept = /accept: "([^"]+)"/.exec(String(error?.message))?.[1] as string;
    const three = (await member("three", { ...declared(at, "second"), accept }))!;
    const list = await eventually(applied, (found) => found.length >= 30);
    assert.deepEqual(
      list.slice(10),
      numbers(20).map((n) => n + 100),
    );
    await three.run.stop();
  });
}

for (const name of ["confluent", "platformatic"] as const) {
  test(`${name}: a topic that is made anew under its reader, and filled past what was read, is not read by the old cursor`, async (t) => {
    const at = await testTopic(t);
    if (at === undefined) return;
    const { schema, pool } = await testDatabase(t, { max: 12 });
    await migrate(pool, { schema });
    await pool.query("create table applied (position bigserial, n int)");
    const member = async (accept: readonly string[]) => {
      const client = await clients[name]?.(t, at);
      if (client === undefined) return undefined;
      const source = kafka({
        ...{ client, topics: [at.topic], groupId: at.groupId, identity: cursor({ accept }) },
        commitIntervalMs: 20,
      });
      const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
      const run = inbox.run(source, async (message, { tx }) => {
        await tx.query("insert into applied (n) values ($1)", [(message.json() as { n: number }).n]);
      });
      t.after(() => run.stop().catch(() => undefined));
      return run;
    };
    const applied = async (): Promise<number[]> =>
      (await pool.query<{ n: number }>("select n from applied order by position")).rows.map(({ n }) => n);
    await at.publish(records(0, 10));
    const reader = await member([]);
    if (reader === undefined) return;
    const ended = reader.finished.then(() => "", String);
    await eventually(applied, (list) => list.length === 10);
    await assertCommitted(at, 10);
    await at.admin.deleteTopics({ topics: [at.topic] });
    await createTopic(at.admin, { topic: at.topic, numPartitions: 1 });
    await at.publish(records(100, 40));
    assert.match(await ended, /was made anew while it was read|belongs to topic id/);
    assert.equal((await applied()).length, 10, "nothing of the new one");
    const asked = await (await member([]))!.finished.then(() => "", String);
    const accept = /accept: "([^"]+)"/.exec(asked)?.[1] as string;
    const agreed = (await member([accept]))!;
    const list = await eventually(applied, (found) => found.length >= 50);
    assert.deepEqual(
      list.slice(10),
      Array.from({ length: 40 }, (_, i) => i + 100),
      "from its beginning, whatever the group has committed",
    );
    await agreed.stop();
  });
}

test("a partition that ends before what is applied is not read until somebody agrees to this end", async (t) => {
  const at = await testTopic(t);
  if (at === undefined) return;
  const { schema, pool } = await testDatabase(t, { max: 12 });
  await migrate(pool, { schema });
  await pool.query("create table applied (n int)");
  const member = async (accept: readonly string[]) => {
    const client = (await clients["kafkajs"]?.(t, at))!;
    const identity = cursor({ topicIds: { [at.topic]: "first" }, accept });
    const source = kafka({ client, topics: [at.topic], groupId: at.groupId, identity });
    const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
    const run = inbox.run(source, async (message, { tx }) => {
      await tx.query("insert into applied values ($1)", [(message.json() as { n: number }).n]);
    });
    t.after(() => run.stop().catch(() => undefined));
    return run;
  };
  const applied = async () => (await pool.query("select from applied")).rows.length;
  await at.publish(records(0, 10));
  const one = await member([]);
  await eventually(applied, (count) => count === 10);
  await one.stop();
  // As it is where the log's last ten records were never written to another replica, or to the copy that was restored.
  await pool.query(`update ${schema}.log_owner set applied = 19`);
  const refused = await (await member([])).finished.then(() => "", String);
  assert.match(refused, /ends at offset 10, and it is applied up to 19/);
  await at.publish(records(10, 15));
  // What came meanwhile has grown past what is applied: the end is remembered all the same.
  const again = await (await member(["first"])).finished.then(() => "", String);
  assert.match(again, /accept: "first\/0@10"/);
  assert.equal(await applied(), 10);
  const agreed = await member(["first/0@10"]);
  await eventually(applied, (count) => count === 25);
  await agreed.stop();
  assert.equal(await applied(), 25);
});

async function committed(at: TestTopic, groupId: string, partition = 0): Promise<number> {
  const [group] = await at.admin.fetchOffsets({ groupId, topics: [at.topic] });
  return Number(group?.partitions.find((one) => one.partition === partition)?.offset ?? -1);
}
