import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { kafka, platformatic, type PlatformaticConsumerClass } from "../../../src/sources/kafka/kafka.ts";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";
import { identityOf } from "./kafka-identity.ts";
import type { KafkaConfig } from "./kafka-place.ts";

interface PlatformaticSubjectConfig extends KafkaConfig {
  /** Where the client is installed: consumer processes are bundles that lie elsewhere. */
  readonly directory: string;
}

/** Topics with six partitions, keys in their partitions, and the group protocol of a client without native code. */
export const subject: Subject = {
  name: "kafka (platformatic)",
  module: import.meta.filename,
  order: "always",
  cumulative: true,
  // A group waits for members that died, and then for one another.
  patienceMs: 60_000,
  variants: ["cooperative", "eager"],
  // Consumer processes have no use for what starts brokers.
  async open(t, needs) {
    const { extraClient, extraClientDirectory } = await import("../../services/kafka-clients.ts");
    if ((await extraClient(t, "platformatic")) === undefined) return undefined;
    const place = await (await import("./kafka-place.ts")).openTopic(t, needs, { commitVersion: 9 });
    if (place === undefined) return undefined;
    const config: PlatformaticSubjectConfig = {
      ...(place.config as KafkaConfig),
      directory: extraClientDirectory("platformatic"),
    };
    return { ...place, config };
  },
};

export async function makeSource(config: PlatformaticSubjectConfig): Promise<Source> {
  const require = createRequire(join(config.directory, "package.json"));
  const module = (await import(pathToFileURL(require.resolve("@platformatic/kafka")).href)) as {
    readonly Consumer: PlatformaticConsumerClass;
  };
  const { topic, groupId, sessionTimeoutMs } = config;
  const client = platformatic(module.Consumer, {
    ...{ clientId: "conformance", bootstrapBrokers: config.brokers, retryDelay: 100 },
    sessionTimeout: sessionTimeoutMs,
    heartbeatInterval: Math.floor(sessionTimeoutMs / 4),
    rebalanceTimeout: Math.max(sessionTimeoutMs, config.pollIntervalMs),
    protocols: [
      config.variant === "cooperative"
        ? { name: "cooperative-sticky", version: 3 }
        : { name: "roundrobin", version: 1 },
    ],
  });
  return kafka({
    ...{ client, topics: [topic], groupId, commitIntervalMs: 100 },
    identity: identityOf(config),
  });
}
