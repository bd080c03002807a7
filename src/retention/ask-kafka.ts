import { InboxError } from "../errors.ts";
import type { BrokerFacts } from "./facts.ts";

/** The part of an admin client of `kafkajs` that is used: `kafka.admin()`, connected. */
export interface KafkaAdminLike {
  describeConfigs(request: {
    includeSynonyms: boolean;
    resources: { type: number; name: string }[];
  }): Promise<{
    readonly resources: readonly {
      readonly configEntries: readonly { readonly configName: string; readonly configValue: string }[];
    }[];
  }>;
}

const topicResource = 2;

/** What Kafka keeps of a topic, as its configuration says, the broker's defaults included. */
export async function askKafka(admin: KafkaAdminLike, topic: string): Promise<BrokerFacts> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: topicResource, name: topic }],
  });
  const entries = resources[0]?.configEntries ?? [];
  return kafkaFacts(
    topic,
    Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue])),
  );
}

/**
 * The same from the topic's configuration, for whoever has it in another way (`kafka-configs --describe --all`). A
 * compacted topic is kept for ever. Kafka deletes whole segments: a record goes when the newest one of its segment is old
 * enough, and a segment may be filled for `segment.ms`. What `retention.bytes` deletes earlier is not counted on.
 */
export function kafkaFacts(topic: string, config: Readonly<Record<string, string | undefined>>): BrokerFacts {
  const policy = config["cleanup.policy"];
  const deletes = policy === undefined || policy.split(",").some((part) => part.trim() === "delete");
  const retention = numberOf(config, "retention.ms", topic);
  return {
    name: `kafka:${topic}`,
    kind: "log",
    retentionMs:
      !deletes || retention < 0
        ? Number.POSITIVE_INFINITY
        : retention + numberOf(config, "segment.ms", topic),
  };
}

function numberOf(config: Readonly<Record<string, string | undefined>>, name: string, topic: string): number {
  const text = config[name];
  if (text !== undefined && /^-?\d{1,19}$/.test(text)) return Number(text);
  throw new InboxError("source-failed", `The configuration of topic ${topic} has no ${name}.`);
}
