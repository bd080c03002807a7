import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "node:test";
import { Partitioners, type Admin, type IHeaders, type ITopicConfig, type Kafka } from "kafkajs";
import { formats } from "../../../src/index.ts";
import { isRejected } from "../../../src/message/message.ts";
import { confluent, type ConfluentModule, type KafkaClient } from "../../../src/sources/kafka/kafka.ts";
import type { KafkaSource } from "../../../src/sources/kafka/kafka.ts";
import type { Delivery, Intake, RunFacts, Settlement } from "../../../src/sources/source.ts";
import { extraClient } from "../../services/kafka-clients.ts";
import { service } from "../../services/service.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { testIntake } from "../../support/intake.ts";
import { connectKafka } from "./connect.ts";
import { createTopic } from "./create-topic.ts";
import { kafkajsClient } from "./kafkajs-client.ts";
import { platformaticClient } from "./platformatic-client.ts";

/** By the header that the tests' records carry. */
export const identity = formats.header({ idHeader: "message-id" });

export interface TestRecord {
  /** In the header `message-id`. */
  readonly id?: string;
  readonly key?: string | Buffer | null;
  /** `null` is a tombstone. Default: the id. */
  readonly value?: string | Buffer | null;
  readonly headers?: IHeaders;
  readonly partition?: number;
}

/** A topic and a group of one test, and a client that is not the source's. */
export interface TestTopic {
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly groupId: string;
  readonly client: Kafka;
  readonly admin: Admin;
  /** Resolves when the broker has stored them, in their order. Default partition: 0. */
  publish(records: readonly TestRecord[]): Promise<void>;
  /** The group's committed offset of a partition; -1 where there is none. */
  committed(partition?: number): Promise<number>;
  /** Commits an offset for the group, which has no members. Default partition: 0. */
  setCommitted(offset: number, partition?: number): Promise<void>;
}

/** `undefined`: there is no broker here, and the test was skipped. */
export async function testTopic(
  t: TestContext,
  config: Omit<ITopicConfig, "topic"> = {},
): Promise<TestTopic | undefined> {
  const facts = await service(t, "kafka");
  return facts === undefined ? undefined : topicAt(t, facts.brokers, config);
}

export async function topicAt(
  t: Scope,
  brokers: readonly string[],
  config: Omit<ITopicConfig, "topic"> = {},
): Promise<TestTopic> {
  const topic = `inbox-test-${randomUUID()}`;
  const groupId = `group-${topic}`;
  const { client, admin, producer } = await connectKafka(t, "test", brokers);
  await createTopic(admin, { numPartitions: 1, ...config, topic });
  return {
    ...{ brokers, topic, groupId, client, admin },
    async publish(records) {
      const messages = records.map(({ id, key = null, value, headers, partition = 0 }) => ({
        ...{ key, partition },
        value: value === undefined ? (id ?? "") : value,
        headers: { ...(id === undefined ? {} : { "message-id": id }), ...headers },
      }));
      await producer.send({ topic, acks: -1, messages });
    },
    async committed(partition = 0) {
      const [group] = await admin.fetchOffsets({ groupId, topics: [topic] });
      return Number(group?.partitions.find((one) => one.partition === partition)?.offset ?? -1);
    },
    async setCommitted(offset, partition = 0) {
      // Without joining the group; kafkajs' `admin.setOffsets` does, and waits five seconds for records.
      const own = client.producer({
        transactionalId: `set-${topic}`,
        maxInFlightRequests: 1,
        idempotent: true,
        createPartitioner: Partitioners.DefaultPartitioner,
      });
      await own.connect();
      const transaction = await own.transaction();
      const partitions = [{ partition, offset: String(offset) }];
      await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic, partitions }] });
      await transaction.commit();
      await own.disconnect();
    },
  };
}

export interface ClientSettings {
  readonly brokers: readonly string[];
  /** Default 6,000. */
  readonly sessionTimeoutMs?: number;
  /** Default 20,000. */
  readonly pollIntervalMs?: number;
  readonly eager?: boolean;
}

/** The clients that a test runs with, each as a user would make it; `undefined`: it is not here, and the test was skipped. */
export const clients: Readonly<
  Record<string, (t: TestContext, settings: ClientSettings) => Promise<KafkaClient | undefined>>
> = {
  async confluent(t, settings) {
    const { brokers, sessionTimeoutMs = 6_000, pollIntervalMs = 20_000, eager = false } = settings;
    const module = (await extraClient(t, "confluent")) as ConfluentModule | undefined;
    if (module === undefined) return undefined;
    return confluent(module, {
      "bootstrap.servers": brokers.join(","),
      "session.timeout.ms": sessionTimeoutMs,
      "heartbeat.interval.ms": Math.floor(sessionTimeoutMs / 4),
      "max.poll.interval.ms": pollIntervalMs,
      "partition.assignment.strategy": eager ? "range,roundrobin" : "cooperative-sticky",
      "reconnect.backoff.ms": 50,
      "reconnect.backoff.max.ms": 500,
    });
  },
  kafkajs: kafkajsClient,
  platformatic: platformaticClient,
};

/** A source under a test's hand: what it delivers waits until the test settles it. */
export interface Driven {
  readonly source: KafkaSource;
  /** All that was delivered so far. */
  readonly delivered: readonly Delivery[];
  readonly warnings: readonly string[];
  /** Resolves when the source has ended by itself. */
  readonly ended: Promise<Error | undefined>;
  /** Resolves with the next so many deliveries that nobody has taken. */
  take(count: number): Promise<Delivery[]>;
  /** Resolves when it holds. */
  until(what: string, holds: () => boolean): Promise<void>;
  /** Takes and acknowledges everything from now on. */
  ackAll(): void;
}

const patienceMs = 30_000;

/** Starts a source; it is closed when the test ends. */
export async function drive(
  t: Scope,
  source: KafkaSource,
  facts: Partial<RunFacts> = {},
  deliver: Intake["deliver"] = () => Promise.resolve(),
): Promise<Driven> {
  const delivered: Delivery[] = [];
  const warnings: string[] = [];
  const waiting = new Set<() => void>();
  let taken = 0;
  let acks = false;
  let end: (error?: Error) => void = () => undefined;
  const ended = new Promise<Error | undefined>((resolve) => (end = resolve));

  const intake = testIntake(
    {
      async deliver(list) {
        delivered.push(...list);
        for (const look of [...waiting]) look();
        if (acks) await source.settle(list.map((delivery) => [delivery, ack]));
        await deliver(list);
      },
      end,
      warn(message) {
        warnings.push(message);
        for (const look of [...waiting]) look();
      },
    },
    facts,
  );
  const until = (what: string, holds: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!holds()) return;
        clearTimeout(timer);
        waiting.delete(look);
        resolve();
      };
      const timer = setTimeout(() => {
        waiting.delete(look);
        reject(
          new Error(
            `${what}: not in ${patienceMs} ms; delivered ${delivered.length}, ${warnings.join("; ")}`,
          ),
        );
      }, patienceMs);
      waiting.add(look);
      look();
    });

  onTestEnd(t, () => source.close());
  await source.start(intake);
  return {
    ...{ source, delivered, warnings, ended, until },
    async take(count) {
      await until(`${taken + count} deliveries`, () => delivered.length >= taken + count);
      taken += count;
      return delivered.slice(taken - count, taken);
    },
    ackAll() {
      acks = true;
      void source.settle(delivered.map((delivery) => [delivery, ack]));
    },
  };
}

export const ack: Settlement = { kind: "ack" };

export const idOf = ({ received }: Delivery): string | undefined =>
  isRejected(received) ? undefined : received.id;

/** Resolves when the group has committed this offset of a partition; fails the test with what it has committed instead. */
export async function assertCommitted(at: TestTopic, offset: number, partition = 0): Promise<void> {
  const found = await eventually(
    (): Promise<number> => at.committed(partition),
    (committed) => committed === offset,
  );
  assert.equal(found, offset, `the committed offset of partition ${partition}`);
}

/** Asks again and again until the answer is as expected; returns the last one. */
export async function eventually<Answer>(
  ask: () => Promise<Answer> | Answer,
  expected: (answer: Answer) => boolean,
): Promise<Answer> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const answer = await ask();
    if (expected(answer) || performance.now() > deadline) return answer;
    await sleep(25);
  }
}
