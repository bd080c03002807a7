import assert from "node:assert/strict";
import test from "node:test";
import type { MessageHandler } from "../../src/inbox/handler.ts";
import { planReplay } from "../../src/replay/plan.ts";
import {
  replayKafka,
  type KafkaOffsetsAdmin,
  type ReplayKafkaOptions,
} from "../../src/replay/kafka-range.ts";
import { extraClient } from "../services/kafka-clients.ts";
import { clients, identity, testTopic } from "../sources/kafka/support.ts";
import { testReplay } from "./support.ts";

/** The part of the package's second API that tells where topics begin and end. */
interface ConfluentKafkajs {
  readonly KafkaJS: {
    readonly Kafka: new (config: object) => {
      admin(): KafkaOffsetsAdmin & { connect(): Promise<void>; disconnect(): Promise<void> };
    };
  };
}

const rebuild = { kind: "rebuild", of: "accounting", consumer: "view" } as const;
const ids = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => `m-${from + at}`);

test("a topic is replayed from a time to its end as of the start, goes on after a stop, and leaves the live group alone", async (t) => {
  const at = await testTopic(t, { numPartitions: 2 });
  if (at === undefined) return;
  const client = await clients["kafkajs"]!(t, at);
  const { replay, column, pool, schema } = await testReplay(t);
  const publish = (list: readonly string[]): Promise<void> =>
    at.publish(list.map((id, n) => ({ id, partition: n % 2 })));
  await publish(ids(0, 10));
  const offsets = await at.admin.fetchTopicOffsets(at.topic);
  assert.deepEqual(
    offsets.map(({ high }) => high),
    ["5", "5"],
  );
  // Brokers date records by milliseconds: the next ones are later than these.
  const [before] = await column<number>(
    "select extract(epoch from clock_timestamp()) * 1000 from pg_sleep(0.02)",
  );
  const from = new Date(Number(before) - 5);
  await publish(ids(10, 40));
  await at.admin.setOffsets({
    groupId: "live",
    topic: at.topic,
    partitions: [{ partition: 0, offset: "3" }],
  });

  const options: ReplayKafkaOptions = {
    ...{ client: client!, admin: at.admin, topics: [at.topic], groupId: at.groupId, identity },
    ...{ from, commitIntervalMs: 20 },
  };
  const source = replayKafka(options);
  const plan = await planReplay(pool, { policy: rebuild, source, schema });
  assert.deepEqual([plan.wouldRun, plan.unreadable], [30, 0]);
  assert.equal(await at.committed(), -1, "the plan leaves no offsets behind");

  let seen = 0;
  const first = replay({
    policy: rebuild,
    source,
    messagesPerSecond: 100,
    handler: async ({ id }, { tx }) => {
      await tx.query("insert into done values ('view', $1)", [id]);
      if (++seen === 5) {
        // What comes while it runs is the live consumer's.
        await publish(ids(100, 110));
        void first.stop();
      }
    },
  });
  const stopped = await first.finished;
  assert.equal(stopped.ended, "stopped");
  const second = await replay({ policy: rebuild, source }).finished;
  assert.equal(second.ended, "done");
  assert.equal(second.resumes, stopped.id);
  assert.ok(second.counts.duplicates <= 5 && second.counts.deliveries < 40, JSON.stringify(second.counts));
  const late = await column<number>(
    "select count(*)::int from done where message_id >= 'm-100' and length(message_id) = 5",
  );
  assert.ok(late[0] === 0 || late[0] === 10, "the second run's end is as of its own start");
  const done = await column<string>("select message_id from done where length(message_id) = 4 order by 1");
  assert.deepEqual(done, ids(10, 40));
  const [group] = await at.admin.fetchOffsets({ groupId: "live", topics: [at.topic] });
  assert.equal(group?.partitions.find(({ partition }) => partition === 0)?.offset, "3");

  const all = await replay({
    policy: { ...rebuild, consumer: "view-2" },
    source: replayKafka({ ...options, from: { [at.topic]: { 0: 2n, 1: 20n } } }),
    handler: () => undefined,
  }).finished;
  // 25 records in each partition now.
  assert.equal(all.counts.applied, 23 + 5);
});

test("confluent: a topic is replayed with its own client and its own administration, from offsets to the end", async (t) => {
  const at = await testTopic(t, { numPartitions: 2 });
  if (at === undefined) return;
  const client = await clients["confluent"]!(t, at);
  if (client === undefined) return;
  const { KafkaJS } = (await extraClient(t, "confluent")) as ConfluentKafkajs;
  const admin = new KafkaJS.Kafka({ kafkaJS: { brokers: at.brokers } }).admin();
  await admin.connect();
  t.after(() => admin.disconnect());
  await at.publish(ids(0, 20).map((id, n) => ({ id, partition: n % 2 })));
  const { replay, column, pool, schema } = await testReplay(t);
  const source = replayKafka({
    ...{ client, admin, topics: [at.topic], groupId: at.groupId, identity },
    from: { [at.topic]: { 0: 2n, 1: 10n } },
  });
  const handler: MessageHandler = async ({ id }, { tx }) => {
    await tx.query("insert into done values ('view', $1)", [id]);
  };
  const { ended, counts } = await replay({ policy: rebuild, source, handler }).finished;
  assert.deepEqual([ended, counts.applied], ["done", 8]);
  const done = await column<string>("select message_id from done");
  assert.deepEqual(
    [...done].sort(),
    ids(0, 20)
      .filter((_, n) => n % 2 === 0 && n >= 4)
      .sort(),
  );
  const since = replayKafka({
    client,
    admin,
    topics: [at.topic],
    groupId: at.groupId,
    identity,
    from: new Date(0),
  });
  const plan = await planReplay(pool, { policy: rebuild, source: since, schema });
  assert.equal(plan.wouldRun, 12);
});
