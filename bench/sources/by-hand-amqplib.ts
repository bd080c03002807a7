import { connect } from "amqplib";
import { byHand } from "./account.ts";
import { stopwatch, type Job, type Result } from "./job.ts";

/** A channel with a prefetch, every message acknowledged by itself when its handler is done. */
export async function measureAmqplib(job: Job): Promise<Result> {
  const connection = await connect(job.address);
  const watch = stopwatch(job.load.deliveries);
  const { handle, close } = byHand(job);
  const channel = await connection.createChannel();
  await channel.prefetch(job.inHand);
  await channel.consume(job.place, (message) => {
    if (message === null) throw new Error("The queue is gone.");
    watch.delivered();
    void handle(message.content).then(() => {
      channel.ack(message);
      watch.acknowledged(1);
    });
  });
  const result = await watch.finished;
  await channel.close();
  await connection.close();
  await close();
  return result;
}
