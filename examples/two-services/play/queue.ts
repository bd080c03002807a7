import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Channel, type ChannelModel } from "amqplib";

/** A queue of RabbitMQ, made for one play. */
export interface Queue {
  readonly url: string;
  readonly name: string;
  /** Messages that wait to be taken. Waits a minute for a broker that is away, or coming up. */
  waiting(): Promise<number>;
  /** Deletes it. */
  close(): Promise<void>;
}

const patienceMs = 60_000;
const retryAfterMs = 200;

/** Makes a queue whose order holds however often its consumers die. Rejects where no broker answers. */
export async function openQueue(url: string): Promise<Queue> {
  const open = async (): Promise<{ connection: ChannelModel; channel: Channel }> => {
    const connection = await connect(url, { timeout: 5_000 });
    connection.on("error", () => undefined);
    const channel = await connection.createChannel();
    channel.on("error", () => undefined);
    return { connection, channel };
  };
  let at = await open();
  const name = `two-services.${randomUUID()}`;
  await at.channel.assertQueue(name, {
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
    async waiting() {
      for (const last = performance.now() + patienceMs; ; await sleep(retryAfterMs)) {
        try {
          return (await at.channel.checkQueue(name)).messageCount;
        } catch (error) {
          if (performance.now() > last) throw error;
          await at.connection.close().catch(() => undefined);
          at = await open().catch(() => at);
        }
      }
    },
    async close() {
      await at.channel.deleteQueue(name).catch(() => undefined);
      await at.connection.close().catch(() => undefined);
    },
  };
}
