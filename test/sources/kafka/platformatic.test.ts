import assert from "node:assert/strict";
import test from "node:test";
import { kafka, platformatic, type PlatformaticConsumerClass } from "../../../src/sources/kafka/kafka.ts";
import { extraClient } from "../../services/kafka-clients.ts";
import { assertCommitted, drive, eventually, identity, idOf, testTopic } from "./support.ts";

// What is this client's own; what all clients must do is in the files beside.

class Consumer {}

test("what the source sets itself, and what is no class or no configuration, is refused", () => {
  const config = { clientId: "c", bootstrapBrokers: ["127.0.0.1:9092"] };
  const wrong: readonly (readonly [unknown, unknown, RegExp])[] = [
    [undefined, config, /Consumer must be the class/],
    [Consumer, undefined, /config must be an object/],
    [Consumer, { ...config, groupId: "g" }, /groupId is set by the source/],
    [Consumer, { ...config, autocommit: true }, /autocommit is set by the source/],
    [Consumer, { ...config, groupProtocol: "consumer" }, /groupProtocol is set by the source/],
    [Consumer, { ...config, protocolsMetadata: () => "" }, /protocolsMetadata is set by the source/],
    [Consumer, { ...config, sessionTimeout: "10" }, /sessionTimeout must be a whole number/],
  ];
  for (const [given, settings, message] of wrong)
    assert.throws(() => platformatic(given as PlatformaticConsumerClass, settings as never), message);
  const client = platformatic(Consumer, { ...config, sessionTimeout: 9_000, rebalanceTimeout: 20_000 });
  assert.equal(client.rebalanceTimeoutMs, 9_000);
});

async function consumerClass(t: test.TestContext): Promise<PlatformaticConsumerClass | undefined> {
  const module = (await extraClient(t, "platformatic")) as
    { readonly Consumer: PlatformaticConsumerClass } | undefined;
  return module?.Consumer;
}

test("what was rolled back in more than one fetch's length is not handed over", async (t) => {
  const at = await testTopic(t);
  const Class = at && (await consumerClass(t));
  if (at === undefined || Class === undefined) return;
  const producer = at.client.producer({
    ...{ transactionalId: `tx-${at.topic}`, maxInFlightRequests: 1, idempotent: true },
  });
  await producer.connect();
  const value = "x".repeat(2_000);
  const send = async (ids: readonly string[], end: "abort" | "commit"): Promise<void> => {
    const transaction = await producer.transaction();
    for (const id of ids)
      await transaction.send({
        topic: at.topic,
        messages: [{ partition: 0, value, headers: { "message-id": id } }],
      });
    await transaction[end]();
  };
  await send(["lost1", "lost2", "lost3", "lost4", "lost5"], "abort");
  await send(["kept1"], "commit");
  await send(["lost6", "lost7", "lost8", "lost9"], "abort");
  await send(["kept2"], "commit");
  await producer.disconnect();
  const client = platformatic(Class, {
    ...{ clientId: "test", bootstrapBrokers: at.brokers, maxBytes: 3_000, maxBytesPerPartition: 3_000 },
  });
  const driven = await drive(
    t,
    kafka({ client, topics: [at.topic], groupId: at.groupId, identity, commitIntervalMs: 20 }),
  );
  driven.ackAll();
  // Ten records, one of which is a mark, in each of four transactions.
  await assertCommitted(at, 5 + 1 + 1 + 1 + 4 + 1 + 1 + 1);
  assert.deepEqual(driven.delivered.map(idOf), ["kept1", "kept2"]);
});

test("partitions that a topic gets while the source runs are read", async (t) => {
  const at = await testTopic(t);
  const Class = at && (await consumerClass(t));
  if (at === undefined || Class === undefined) return;
  const client = platformatic(Class, {
    ...{ clientId: "test", bootstrapBrokers: at.brokers, metadataMaxAge: 200, retryDelay: 100 },
  });
  const source = kafka({
    ...{ client, topics: [at.topic], groupId: at.groupId, identity, commitIntervalMs: 20 },
  });
  const driven = await drive(t, source);
  driven.ackAll();
  await at.publish([{ id: "old" }]);
  await driven.take(1);
  await at.admin.createPartitions({ topicPartitions: [{ topic: at.topic, count: 3 }] });
  // The test's own client learns of them with this.
  await at.admin.fetchTopicMetadata({ topics: [at.topic] });
  const fresh = at.client.producer();
  await fresh.connect();
  await fresh.send({
    topic: at.topic,
    messages: [1, 2].map((partition) => ({
      ...{ partition, value: "v", headers: { "message-id": `new${partition}` } },
    })),
  });
  await fresh.disconnect();
  assert.deepEqual((await driven.take(2)).map(idOf).sort(), ["new1", "new2"]);
  for (const [partition, offset] of [1, 1, 1].entries()) await assertCommitted(at, offset, partition);
});

test("a group without committed offsets begins with what comes after, where that is asked for", async (t) => {
  const at = await testTopic(t);
  const Class = at && (await consumerClass(t));
  if (at === undefined || Class === undefined) return;
  await at.publish([{ id: "before" }]);
  const client = platformatic(
    Class,
    { clientId: "test", bootstrapBrokers: at.brokers, retryDelay: 100 },
    { fromBeginning: false },
  );
  const source = kafka({ client, topics: [at.topic], groupId: at.groupId, identity, commitIntervalMs: 20 });
  const driven = await drive(t, source);
  driven.ackAll();
  // It has begun when it knows where.
  await eventually(
    () => source.progress().partitions[0]?.settledTo,
    (settledTo) => settledTo !== undefined,
  );
  await at.publish([{ id: "after" }]);
  assert.deepEqual((await driven.take(1)).map(idOf), ["after"]);
  await assertCommitted(at, 2);
});
