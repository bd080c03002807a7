import { randomUUID } from "node:crypto";
import { Kafka, logLevel } from "kafkajs";

/** A topic of eight partitions. */
export async function kafkaTopic(
  brokers: string,
): Promise<{ readonly name: string; remove(): Promise<void> }> {
  const admin = new Kafka({ brokers: brokers.split(","), logLevel: logLevel.NOTHING }).admin();
  const topic = `bench-${randomUUID()}`;
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: 8 }], waitForLeaders: true });
  return {
    name: topic,
    async remove() {
      await admin.deleteTopics({ topics: [topic] });
      await admin.disconnect();
    },
  };
}
