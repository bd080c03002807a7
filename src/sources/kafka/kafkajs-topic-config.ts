import type { KafkajsKafka } from "./kafkajs-shapes.ts";
import type { TopicConfig } from "./topic-retention.ts";
import { within } from "./within.ts";

interface ConfigAdmin {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  describeConfigs(request: {
    readonly includeSynonyms: boolean;
    readonly resources: readonly { readonly type: number; readonly name: string }[];
  }): Promise<{
    readonly resources: readonly {
      readonly configEntries: readonly { readonly configName: string; readonly configValue: string }[];
    }[];
  }>;
}

const topicResource = 2;
const answerMs = 10_000;
const leaveMs = 2_000;

/** Asks for a topic's configuration over a connection of its own. Rejects if the broker refuses, or does not answer in time. */
export async function kafkajsTopicConfig(
  Kafka: KafkajsKafka,
  config: object,
  topic: string,
): Promise<TopicConfig> {
  const admin = new Kafka(config as never).admin({} as never) as ConfigAdmin;
  async function ask(): Promise<TopicConfig> {
    await admin.connect();
    const request = { includeSynonyms: false, resources: [{ type: topicResource, name: topic }] };
    const { resources } = await admin.describeConfigs(request);
    const entries = resources[0]?.configEntries ?? [];
    return Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue]));
  }
  try {
    const asked = ask();
    if (await within(asked, answerMs)) return await asked;
    asked.catch(() => undefined);
    throw new Error(`no broker answered within ${answerMs} ms`);
  } finally {
    await within(admin.disconnect(), leaveMs).catch(() => false);
  }
}
