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

/** Makes a durable queue whose order holds however often its consumers die. Rejects where no broker answers. */
export async function openQueue(url: string): Promise<Queue> {
  const connection = await connect(url, { timeout: 5_000 });
  connection.on("error", () => undefined);
  const channel = await connection.createChannel();
  channel.on("error", () => undefined);
  const name = `two-services.${randomUUID()}`;
  await channel.assertQueue(name, {
    durable: true,
    // One consumer at a time, and the next when it is gone: several at once would share the messages of one customer.
    arguments: { "x-single-active-consumer": true },
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
