import { nameOf, type TopicPartition, type Watermarks } from "./client.ts";
import type { KafkajsAdmin } from "./kafkajs-shapes.ts";

/** The watermarks of one partition. kafkajs asks for a whole topic at once, so that those who ask together share it. */
export type KafkajsWatermarks = (partition: TopicPartition) => Promise<Watermarks>;

export function createKafkajsWatermarks(admin: KafkajsAdmin): KafkajsWatermarks {
  const asking = new Map<string, ReturnType<KafkajsAdmin["fetchTopicOffsets"]>>();

  function ask(topic: string): ReturnType<KafkajsAdmin["fetchTopicOffsets"]> {
    const before = asking.get(topic);
    if (before !== undefined) return before;
    const answer = admin.fetchTopicOffsets(topic).finally(() => asking.delete(topic));
    asking.set(topic, answer);
    return answer;
  }

  return async (partition) => {
    const found = (await ask(partition.topic)).find((each) => each.partition === partition.partition);
    if (found === undefined) throw new Error(`There is no partition ${nameOf(partition)}.`);
    return { low: BigInt(found.low), high: BigInt(found.high) };
  };
}
