import { randomUUID } from "node:crypto";
import { connect } from "amqplib";

/** A queue of RabbitMQ, made for one play. */
export interface Queue {
  readonly url: string;
  readonly name: string;
  /** Messages that wait to be taken. */
  waiting(): Promise<number>;
  /** Deletes it. */
  close(): Promise<void>;
}

/** Makes a queue whose order holds however often its consumers die. Rejects where no broker answers. */
export async function openQueue(url: string): Promise<Queue> {
  const connection = await connect(url, { timeout: 5_000 });
  connection.on("error", () => undefined);
  const channel = await connection.createChannel();
  channel.on("error", () => undefined);
  const name = `two-services.${randomUUID()}`;
  await channel.assertQueue(name, {
    durable: true,
    arguments: {
      "x-queue-type": "quorum",
      // One consumer at a time, and the next when it is gone: several at once would share the messages of one customer.
      "x-single-active-consumer": true,
      // What is in the hands of a consumer that dies comes back. RabbitMQ 4 drops a message that came back 20 times.
      "x-delivery-limit": 1_000,
    },
  });
  return {
    url,
    name,
    waiting: async () => (await channel.checkQueue(name)).messageCount,
    async close() {
      await channel.deleteQueue(name).catch(() => undefined);
      await connection.close().catch(() => undefined);
    },
  };
}
