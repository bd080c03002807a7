import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import type { KafkaProducer, KafkaRecord } from "../../../src/relay/destinations/kafka/producer.ts";
import { kafka } from "../../../src/sources/kafka/kafka.ts";
import { recordEffect, testInbox } from "../../inbox/support.ts";
import { until } from "../../pending/support.ts";
import { ownService } from "../../services/service.ts";
import { clients, identity, topicAt } from "../../sources/kafka/support.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { producers } from "./kafka-clients.ts";

const patienceMs = 60_000;

// Both ends on one cluster, since three nodes take long to start.
test(
  "one of three brokers killed under load: what a producer confirms is there, and every source goes on; each message is applied once",
  { timeout: 180_000 },
  async (t) => {
    const cluster = await ownService(t, "kafka-cluster");
    if (cluster === undefined) return;
    const { brokers } = cluster.facts;
    const players = await Promise.all(
      ["confluent", "kafkajs"].map(async (name) => {
        const client = await clients[name]!(t, { brokers });
        const producer = await producers[name]!(t, brokers);
        if (client === undefined || producer === undefined) return [];
        onTestEnd(t, () => producer.close());
        const at = await topicAt(t, brokers, { numPartitions: 4, replicationFactor: 3 });
        const own = await testInbox(t, { consumer: name, lanes: 2, maxBatch: 10 });
        const { topic, groupId } = at;
        const run = own.inbox.run(
          kafka({ client, topics: [topic], groupId, identity, commitIntervalMs: 20 }),
          recordEffect,
        );
        onTestEnd(t, () => run.stop().then(() => undefined));
        return [{ name, at, own, run, publish: (from: string) => publish(producer, topic, from) }];
      }),
    ).then((all) => all.flat());
    assert.ok(players.length > 0, "no client is here");
    await Promise.all(players.map(({ publish }) => publish("first")));
    for (const { own } of players) await until(own.pool, "(select count(*) from effect) >= 10", patienceMs);

    const { at } = players[0]!;
    const { topics } = await at.admin.fetchTopicMetadata({ topics: [at.topic] });
    process.kill(cluster.pids[topics[0]!.partitions[0]!.leader - 1]!, "SIGKILL");
    for (let round = 0; round < 5; round++) {
      await Promise.all(players.map(({ publish }) => publish(`round${round}`)));
    }

    for (const { own, run, name } of players) {
      const sent = 6 * perRound;
      await until(own.pool, `(select count(distinct message_id) from effect) >= ${sent}`, patienceMs);
      await run.stop();
      const effects = await own.effects();
      assert.equal(Object.keys(effects).length, sent, name);
      assert.deepEqual(new Set(Object.values(effects)), new Set([1]), name);
      assert.deepEqual(await own.quarantined(), [], name);
    }
  },
);

const perRound = 60;

/** Sends until all are confirmed: without keys, so that a client spreads them as it likes, and with. */
async function publish(producer: KafkaProducer, topic: string, from: string): Promise<void> {
  let open = Array.from({ length: perRound }, (_, i): KafkaRecord => {
    const id = `${from}-${i}`;
    const key = i % 2 === 0 ? null : Buffer.from(`k${i % 24}`);
    return { topic, key, value: Buffer.from(id), headers: { "message-id": id }, bytes: 200 };
  });
  for (const deadline = performance.now() + patienceMs; open.length > 0;) {
    await producer.connect().catch(() => undefined);
    const failures = await producer.send(open);
    open = open.filter((_, i) => failures[i] !== undefined);
    if (performance.now() > deadline)
      throw new Error(`${open.length} are not confirmed.`, { cause: failures });
    if (open.length > 0) await sleep(50);
  }
}
