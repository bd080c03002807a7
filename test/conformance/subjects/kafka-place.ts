import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "node:test";
import type { Admin, Producer } from "kafkajs";
import { ownService, service } from "../../services/service.ts";
import { connectKafka } from "../../sources/kafka/connect.ts";
import { createTopic } from "../../sources/kafka/create-topic.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import { lineThrough, type Needs, type Place, type Sent } from "../subject.ts";

/** What every Kafka subject makes its source of. */
export interface KafkaConfig {
  /** Through the proxy where the case cuts lines. */
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly groupId: string;
  /** How soon a member that says nothing is given up, and how long it may go without asking for records. */
  readonly sessionTimeoutMs: number;
  readonly pollIntervalMs: number;
  /** Of the subject's `variants`. */
  readonly variant?: string;
  /** With the cursor strategy. */
  readonly namesByPlace?: boolean;
}

export interface KafkaPlaceOptions {
  /** The version of OffsetCommit that the client sends: its header is how a settlement is known on the wire. */
  readonly commitVersion?: number;
}

// A group waits for a member that was killed for as long.
const sessionTimeoutMs = 2_000;
const pollIntervalMs = 20_000;
const shortPollIntervalMs = 2_000;
// More than consumers, so that each has some.
const numPartitions = 6;

/** A topic and a group of the case's own. */
export async function openTopic(
  t: TestContext,
  needs: Needs,
  { commitVersion }: KafkaPlaceOptions = {},
): Promise<Place | undefined> {
  const alone = needs.restart === true || needs.line === true;
  const own = alone ? await ownService(t, "kafka") : undefined;
  const facts = alone ? own?.facts : await service(t, "kafka");
  if (facts === undefined) return undefined;

  const { admin, producer } = await connectKafka(t, "place", facts.brokers, needs.namesByPlace);
  const topic = needs.name;
  await createTopic(admin, { topic, numPartitions });

  const { proxied } = facts;
  if (needs.line && proxied === undefined) throw new Error("An own broker has a listener for a proxy.");
  const proxy =
    needs.line && proxied !== undefined
      ? await faultProxy(t, proxied.target, proxied.advertised.port)
      : undefined;
  const leaseMs = shortPollIntervalMs;
  return {
    config: {
      ...{ topic, groupId: topic, sessionTimeoutMs },
      brokers: proxy === undefined ? facts.brokers : [`${proxy.host}:${proxy.port}`],
      pollIntervalMs: needs.shortLease ? leaseMs : pollIntervalMs,
      ...(needs.variant === undefined ? {} : { variant: needs.variant }),
      ...(needs.namesByPlace === undefined ? {} : { namesByPlace: needs.namesByPlace }),
    } satisfies KafkaConfig,
    publish: (messages) => publish(producer, topic, messages),
    unsettled: () => unsettled(admin, topic, topic),
    ...(proxy === undefined ? {} : { line: lineThrough(proxy, commitHeader(commitVersion)) }),
    ...(own === undefined || !needs.restart
      ? {}
      : {
          async restart() {
            await own.kill();
            await own.start();
          },
        }),
    ...(needs.shortLease ? { leaseMs } : {}),
  };
}

/** The key of OffsetCommit is 8; the version comes next. */
const commitHeader = (version: number | undefined): string | undefined =>
  version === undefined ? undefined : `\u0000\u0008\u0000${String.fromCharCode(version)}`;

/** Where the producer is not idempotent what is stored twice around a restart is the same message twice, in its order. */
async function publish(producer: Producer, topic: string, messages: readonly Sent[]): Promise<void> {
  await producer.send({
    topic,
    acks: -1,
    messages: messages.map(({ id, key, body }) => ({
      key,
      value: body,
      headers: id === undefined ? {} : { "message-id": id },
    })),
  });
}

/** What lies between the group's offsets and the ends of the partitions. */
async function unsettled(admin: Admin, topic: string, groupId: string): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      const ends = await admin.fetchTopicOffsets(topic);
      const [group] = await admin.fetchOffsets({ groupId, topics: [topic] });
      const committed = new Map(group?.partitions.map(({ partition, offset }) => [partition, offset]));
      return ends.reduce((sum, { partition, high, low }) => {
        const offset = committed.get(partition);
        return sum + Number(high) - Math.max(Number(low), Number(offset ?? 0));
      }, 0);
    } catch (error) {
      // A broker that is being restarted, or is just finding its coordinators.
      if (tries === 100) throw error;
      await sleep(100);
    }
  }
}
