import type { Intake, Kept } from "../source.ts";
import type { KafkaClient } from "./client.ts";
import { topicRetentionMs } from "./topic-retention.ts";

/**
 * Tells how long the broker keeps the topics, before anything is received. Whatever keeps it from being known is a
 * warning that says what to do; only what the run refuses is thrown (`window-too-short`).
 */
export async function tellKept(
  client: KafkaClient,
  topics: readonly string[],
  intake: Intake,
): Promise<void> {
  if (intake.kept === undefined) return;
  const kept: Kept[] = [];
  const unknown = (topic: string, why: string): void =>
    intake.warn(
      `How long Kafka keeps ${topic} is not known (${why}), so it is not compared with how long identities are kept. ` +
        "Allow this user DescribeConfigs on the topic, or give the run `kept`.",
    );
  for (const topic of topics) {
    try {
      const config = await client.topicConfig?.(topic);
      const retentionMs = config && topicRetentionMs(config);
      if (config === undefined) unknown(topic, `${client.name} cannot ask`);
      else if (retentionMs === undefined) unknown(topic, "its configuration does not say");
      else kept.push({ name: `kafka:${topic}`, retentionMs });
    } catch (error) {
      unknown(topic, error instanceof Error ? error.message : String(error));
    }
  }
  if (kept.length > 0) intake.kept(kept);
}
