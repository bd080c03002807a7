import { InboxError } from "../errors.ts";
import { topicRetentionMs, type TopicConfig } from "../sources/kafka/topic-retention.ts";
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
 * compacted topic is kept for ever. Throws `source-failed` where the configuration does not say how long.
 */
export function kafkaFacts(topic: string, config: TopicConfig): BrokerFacts {
  const retentionMs = topicRetentionMs(config);
  if (retentionMs !== undefined) return { name: `kafka:${topic}`, kind: "log", retentionMs };
  const text = `The configuration of topic ${topic} has no retention.ms, or no segment.ms.`;
  throw new InboxError("source-failed", text);
}
