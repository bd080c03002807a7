import { Kafka, logLevel } from "kafkajs";
import { kafka, kafkajs } from "../../../src/sources/kafka/kafka.ts";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";
import { identityOf } from "./kafka-identity.ts";
import type { KafkaConfig } from "./kafka-place.ts";

/** Topics with six partitions, keys in their partitions, and kafkajs, whose rebalances are all eager. */
export const subject: Subject = {
  name: "kafka (kafkajs)",
  module: import.meta.filename,
  order: "always",
  cumulative: true,
  // A group waits for members that died, and then for one another.
  patienceMs: 60_000,
  variants: ["eager"],
  // Consumer processes have no use for what starts brokers.
  open: async (t, needs) => (await import("./kafka-place.ts")).openTopic(t, needs, { commitVersion: 5 }),
};

export function makeSource(config: KafkaConfig): Source {
  const { topic, groupId, sessionTimeoutMs } = config;
  const client = kafkajs(
    Kafka,
    {
      ...{ clientId: "conformance", brokers: config.brokers, logLevel: logLevel.NOTHING },
      retry: { initialRetryTime: 50, maxRetryTime: 500 },
    },
    {
      consumer: {
        sessionTimeout: sessionTimeoutMs,
        heartbeatInterval: Math.floor(sessionTimeoutMs / 4),
        rebalanceTimeout: config.pollIntervalMs,
      },
    },
  );
  return kafka({
    ...{ client, topics: [topic], groupId, commitIntervalMs: 100 },
    identity: identityOf(config, "declared"),
  });
}
