import { randomUUID } from "node:crypto";
import { Kafka, logLevel } from "kafkajs";
import { accountIn } from "../setup.ts";
import type { Filled } from "./fill.ts";
import { lists, publications, type Load } from "./messages.ts";

const atOnce = 5_000;
const partitions = 8;

/** A topic of eight partitions, the account as the key. */
export async function fillKafka(brokers: string, load: Load): Promise<Filled> {
  const kafka = new Kafka({ brokers: brokers.split(","), logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  const producer = kafka.producer();
  const topic = `bench-${randomUUID()}`;
  await admin.connect();
  await producer.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: partitions }], waitForLeaders: true });
  for (const list of lists(publications(load), atOnce)) {
    const messages = list.map(({ id, payload }) => ({
      key: `account-${accountIn(payload.toString())}`,
      value: payload,
      headers: { id },
    }));
    await producer.send({ topic, messages });
  }
  await producer.disconnect();
  return {
    place: topic,
    async remove() {
      await admin.deleteTopics({ topics: [topic] });
      await admin.disconnect();
    },
  };
}
