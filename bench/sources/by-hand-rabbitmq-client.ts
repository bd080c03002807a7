import { Connection } from "rabbitmq-client";
import { byHand } from "./account.ts";
import { stopwatch, type Job, type Result } from "./job.ts";

/** A channel with a prefetch, every message acknowledged by itself when its handler is done. */
export async function measureRabbitmqClient(job: Job): Promise<Result> {
  const connection = new Connection(job.address);
  const watch = stopwatch(job.load.deliveries);
  const { handle, close } = byHand(job);
  const channel = await connection.acquire();
  await channel.basicQos({ prefetchCount: job.inHand });
  await channel.basicConsume({ queue: job.place }, (message) => {
    watch.delivered();
    // The client parses bodies that say they are JSON; these say nothing.
    void handle(message.body as Buffer).then(() => {
      channel.basicAck({ deliveryTag: message.deliveryTag });
      watch.acknowledged(1);
    });
  });
  const result = await watch.finished;
  await channel.close();
  await connection.close();
  await close();
  return result;
}
