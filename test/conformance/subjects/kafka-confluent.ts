import { createRequire } from "node:module";
import { join } from "node:path";
import { confluent, kafka, type ConfluentModule } from "../../../src/sources/kafka/kafka.ts";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";
import { identityOf } from "./kafka-identity.ts";
import type { KafkaConfig } from "./kafka-place.ts";

interface ConfluentSubjectConfig extends KafkaConfig {
  /** Where the client is installed: consumer processes are bundles that lie elsewhere. */
  readonly directory: string;
}

/** Topics with six partitions, keys in their partitions, and librdkafka's group membership. */
export const subject: Subject = {
  name: "kafka (confluent)",
  module: import.meta.filename,
  order: "always",
  cumulative: true,
  variants: ["cooperative", "eager"],
  // Rebalances wait for members that were killed.
  patienceMs: 60_000,
  // Consumer processes have no use for what starts brokers.
  async open(t, needs) {
    const { extraClient, extraClientDirectory } = await import("../../services/kafka-clients.ts");
    if ((await extraClient(t, "confluent")) === undefined) return undefined;
    const place = await (await import("./kafka-place.ts")).openTopic(t, needs, { commitVersion: 9 });
    if (place === undefined) return undefined;
    const config: ConfluentSubjectConfig = {
      ...(place.config as KafkaConfig),
      directory: extraClientDirectory("confluent"),
    };
    return { ...place, config };
  },
};

export function makeSource(config: ConfluentSubjectConfig): Source {
  const require = createRequire(join(config.directory, "package.json"));
  const client = confluent(require("@confluentinc/kafka-javascript") as ConfluentModule, {
    "bootstrap.servers": config.brokers.join(","),
    "session.timeout.ms": config.sessionTimeoutMs,
    "heartbeat.interval.ms": Math.floor(config.sessionTimeoutMs / 4),
    "max.poll.interval.ms": config.pollIntervalMs,
    "partition.assignment.strategy": config.variant === "eager" ? "range,roundrobin" : "cooperative-sticky",
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
  });
  return kafka({
    ...{ client, topics: [config.topic], groupId: config.groupId, commitIntervalMs: 100 },
    identity: identityOf(config),
  });
}
