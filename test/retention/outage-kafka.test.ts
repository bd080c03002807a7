import assert from "node:assert/strict";
import { test } from "node:test";
import { kafka } from "../../src/sources/kafka/kafka.ts";
import { gate, recordEffect } from "../inbox/support.ts";
import { assertCommitted, clients, eventually, identity, testTopic } from "../sources/kafka/support.ts";
import { hour, options, outageCase } from "./outage-case.ts";

const ids = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => `m${from + i}`);

test("Kafka: down two hours, cleanup due, offsets back at the beginning: nothing runs twice; and once forgotten, it is late", async (t) => {
  const at = await testTopic(t);
  if (at === undefined) return;
  const client = await clients["kafkajs"]!(t, at);
  const { pool, inbox, effects, quarantined, cleanup, down, ranOn, untilCaughtUp, swept } =
    await outageCase(t);
  const producer = at.client.producer();
  await producer.connect();
  t.after(() => producer.disconnect());
  // The messages carry no time of their own: the record's counts.
  const publish = (list: readonly string[], hoursAgo: number) =>
    producer.send({
      ...{ topic: at.topic, acks: -1 },
      messages: list.map((id) => ({
        ...{ value: id, headers: { "message-id": id } },
        timestamp: String(Date.now() - hoursAgo * hour),
      })),
    });
  const open = () => kafka({ client: client!, topics: [at.topic], groupId: at.groupId, identity });
  // kafkajs' admin.resetOffsets does the same, but waits for five seconds.
  async function rewind(): Promise<void> {
    const member = at!.client.consumer({ groupId: at!.groupId, maxWaitTimeInMs: 50 });
    const joined = new Promise<void>((resolve) => member.on("consumer.group_join", () => resolve()));
    await member.connect();
    await member.subscribe({ topic: at!.topic });
    await member.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: async () => undefined });
    await joined;
    await member.commitOffsets([{ topic: at!.topic, partition: 0, offset: "0" }]);
    await member.disconnect();
  }
  const settled = async (run: ReturnType<typeof inbox.run>, count: number): Promise<void> => {
    const { settled: found } = await eventually(
      () => run.stats(),
      (stats) => stats.settled >= count,
    );
    assert.equal(found, count);
  };

  await publish(ids(0, 20), 2.6);
  const before = inbox.run(open(), recordEffect, options);
  await untilCaughtUp();
  // It has been running for long; what it applied was half an hour ago.
  await pool.query("update source_clock set since = since - interval '1 day'");
  await pool.query("update message set processed_at = processed_at - interval '30 minutes'");
  await before.stop();
  await assertCommitted(at, 20);

  await down(2);
  const away = await cleanup().once();
  assert.deepEqual([away.identities, away.consumers[0]?.waitsFor], [0, [open().name]], "it is down");

  // Meanwhile others sent on; and somebody sets the offsets back.
  await publish(ids(20, 40), 1.5);
  await rewind();
  assert.equal(await at.committed(), 0);
  const held = gate();
  const after = inbox.run(
    open(),
    async (message, context) => {
      await held.opened;
      await recordEffect(message, context);
    },
    options,
  );
  await eventually(
    () => after.stats().deliveries,
    (count) => count === 40,
  );
  const starting = await cleanup().once();
  assert.deepEqual(
    [starting.identities, starting.consumers[0]?.waitsFor],
    [0, [open().name]],
    "not caught up",
  );
  const opened = new Date(Date.now() - 60_000);
  held.open();
  await settled(after, 40);
  const { applied, duplicate } = after.stats().outcomes;
  assert.deepEqual([applied, duplicate], [20, 20]);
  await untilCaughtUp(opened);
  assert.equal(await swept(), 0, "half an hour and two of standing still are half an hour");

  // Three hours on, all of it is forgotten; and the group's position is lost.
  await ranOn(3);
  assert.equal(await swept(), 40);
  await after.stop();
  // Its last member may have left a moment ago.
  const lost = () =>
    at.admin.deleteGroups([at.groupId]).then(
      () => true,
      () => false,
    );
  assert.equal(await eventually(lost, Boolean), true);
  await publish(ids(40, 42), 0);
  const again = inbox.run(open(), recordEffect, options);
  await settled(again, 42);
  assert.deepEqual([again.stats().outcomes.late, again.stats().outcomes.applied], [40, 2]);
  await again.stop();
  const counts = await effects();
  assert.deepEqual(Object.keys(counts).sort(), ids(0, 42).sort());
  for (const [id, times] of Object.entries(counts)) assert.equal(times, 1, id);
  const late = await quarantined();
  assert.deepEqual([late.length, new Set(late.map(({ code }) => code))], [40, new Set(["late"])]);
});
