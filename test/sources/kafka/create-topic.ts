import { setTimeout as sleep } from "node:timers/promises";
import type { Admin, ITopicConfig } from "kafkajs";

const tries = 200;

/**
 * Creates a topic and resolves when all its partitions have leaders. kafkajs' own `waitForLeaders` fails where the broker
 * has not heard of the topic yet, as one that is busy.
 */
export async function createTopic(admin: Admin, config: ITopicConfig): Promise<void> {
  await admin.createTopics({ topics: [config], waitForLeaders: false });
  for (let tried = 1; ; tried++) {
    const found = await admin.fetchTopicMetadata({ topics: [config.topic] }).catch((error: unknown) => {
      if (tried === tries) throw error;
      return undefined;
    });
    const partitions = found?.topics[0]?.partitions ?? [];
    if (partitions.length > 0 && partitions.every(({ leader }) => leader >= 0)) return;
    if (tried === tries) throw new Error(`The topic ${config.topic} has no leaders.`);
    await sleep(50);
  }
}
