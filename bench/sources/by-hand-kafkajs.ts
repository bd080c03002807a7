import { randomUUID } from "node:crypto";
import { Kafka, logLevel } from "kafkajs";
import { byHand } from "./account.ts";
import { stopwatch, type Job, type Result } from "./job.ts";
import { lists } from "./messages.ts";

/** Batch by batch, as many side by side as may be in hand; offsets are committed by the client. */
export async function measureKafkajs(job: Job): Promise<Result> {
  const kafka = new Kafka({ brokers: job.address.split(","), logLevel: logLevel.NOTHING });
  const watch = stopwatch(job.load.deliveries);
  const { handle, close } = byHand(job);
  const consumer = kafka.consumer({ groupId: `bench-${randomUUID()}` });
  await consumer.connect();
  await consumer.subscribe({ topics: [job.place], fromBeginning: true });
  await consumer.run({
    async eachBatch({ batch, resolveOffset, heartbeat, commitOffsetsIfNecessary }) {
      watch.delivered();
      for (const list of lists(batch.messages, job.inHand)) {
        await Promise.all(list.map(({ value }) => handle(value as Buffer)));
        resolveOffset(list.at(-1)!.offset);
        await commitOffsetsIfNecessary();
        await heartbeat();
        watch.acknowledged(list.length);
      }
    },
  });
  const result = await watch.finished;
  await consumer.disconnect();
  await close();
  return result;
}
