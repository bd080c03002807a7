import { randomUUID } from "node:crypto";
import { connect, type ConfirmChannel } from "amqplib";
import type { Filled } from "./fill.ts";
import { lists, publications, type Load } from "./messages.ts";
import { accountIn } from "../setup.ts";

const atOnce = 5_000;

/** A durable queue with persistent messages, every one confirmed by the broker. */
export async function fillRabbitmq(url: string, load: Load): Promise<Filled> {
  const connection = await connect(url);
  const channel: ConfirmChannel = await connection.createConfirmChannel();
  const queue = `bench-${randomUUID()}`;
  await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "classic" } });
  for (const list of lists(publications(load), atOnce)) {
    for (const { id, payload } of list) {
      const key = `account-${accountIn(payload.toString())}`;
      channel.sendToQueue(queue, payload, { persistent: true, messageId: id, headers: { key } });
    }
    await channel.waitForConfirms();
  }
  return {
    place: queue,
    async remove() {
      await channel.deleteQueue(queue);
      await connection.close();
    },
  };
}
