import { setTimeout as sleep } from "node:timers/promises";
import type { Admin, ITopicConfig } from "kafkajs";

const tries = 200;

/**
 * Creates a topic and resolves when all its partitions have leaders, and these serve them: a producer whose request one
 * partition refuses sends it again for all. kafkajs' own `waitForLeaders` fails where a busy broker has not heard of the
 * topic yet.
 */
export async function createTopic(admin: Admin, config: ITopicConfig): Promise<void> {
  await admin.createTopics({ topics: [config], waitForLeaders: false });
  for (let tried = 1; ; tried++) {
    try {
      const found = await admin.fetchTopicMetadata({ topics: [config.topic] });
      const partitions = found.topics[0]?.partitions ?? [];
      if (partitions.length > 0 && partitions.every(({ leader }) => leader >= 0)) {
        await admin.fetchTopicOffsets(config.topic);
        return;
      }
    } catch (error) {
      if (tried === tries) throw error;
    }
    if (tried === tries) throw new Error(`The topic ${config.topic} has no leaders.`);
    await sleep(50);
  }
}
