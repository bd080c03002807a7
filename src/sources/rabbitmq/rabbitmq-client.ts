import { isUint8Array } from "node:util/types";
import { InboxError } from "../../errors.ts";
import type { AmqpChannel, AmqpClient, AmqpMessage, ChannelEvents, ConnectionEvents } from "./client.ts";

/** The part of a `Connection` of `rabbitmq-client` that is used. */
export interface RabbitmqClientConnection {
  acquire(options?: { emitErrorsFromChannel?: boolean }): Promise<RabbitmqClientChannel>;
  close(): Promise<void>;
  on(name: "error", listener: (error: unknown) => void): unknown;
  on(name: "connection.blocked", listener: (reason: string) => void): unknown;
  off(name: "error", listener: (error: unknown) => void): unknown;
  off(name: "connection.blocked", listener: (reason: string) => void): unknown;
}

/** The part of a `Channel` of `rabbitmq-client` that is used. */
export interface RabbitmqClientChannel {
  queueDeclare(params: { queue: string; passive: boolean }): Promise<{ messageCount: number }>;
  basicQos(params: { prefetchCount: number }): Promise<void>;
  basicConsume(
    params: { queue: string; arguments?: { "x-priority"?: number } },
    listener: (message: RabbitmqClientMessage) => void,
  ): Promise<{ consumerTag: string }>;
  basicCancel(params: { consumerTag: string }): Promise<unknown>;
  basicAck(params: { deliveryTag: number; multiple: boolean }): void;
  basicNack(params: { deliveryTag: number; requeue: boolean }): void;
  close(): Promise<void>;
  on(name: "close", listener: () => void): unknown;
  on(name: "error", listener: (error: unknown) => void): unknown;
  on(name: "basic.cancel", listener: (consumerTag: string, error: unknown) => void): unknown;
}

/** What of a message of `rabbitmq-client` says how it was delivered. */
export interface RabbitmqClientMessage {
  readonly deliveryTag: number;
  readonly redelivered: boolean;
  readonly exchange: string;
  readonly routingKey: string;
  readonly body: unknown;
}

/** `connection` reconnects by itself. It is closed with the source only where it is the source's own. */
export function rabbitmqClient(
  connection: RabbitmqClientConnection,
  own: boolean,
  { blocked }: ConnectionEvents,
): AmqpClient {
  let lastError: unknown;
  // Without a listener a lost connection would end the process. What it means is seen at the channel.
  const onError = (error: unknown): void => void (lastError = error);
  connection.on("error", onError);
  connection.on("connection.blocked", blocked);
  return {
    async open(events) {
      lastError = undefined;
      const channel = await connection.acquire({ emitErrorsFromChannel: true });
      return channelOf(channel, events, () => lastError);
    },
    version: () => undefined,
    async close() {
      if (own) await connection.close();
      connection.off("connection.blocked", blocked);
      if (!own) connection.off("error", onError);
    },
  };
}

function channelOf(
  channel: RabbitmqClientChannel,
  events: ChannelEvents,
  connectionError: () => unknown,
): AmqpChannel {
  keepBodies(channel);
  let lastError: unknown;
  let over = false;
  const lose = (error: unknown): void => {
    if (over) return;
    over = true;
    events.lost(error instanceof Error ? error : new Error("the channel was closed"));
  };
  channel.on("error", (error) => (lastError = error));
  // The error of a connection is told after its channels have closed.
  channel.on("close", () => setImmediate(() => lose(lastError ?? connectionError())));
  channel.on("basic.cancel", () => lose(new Error("the broker cancelled the consumer")));
  const take = (message: RabbitmqClientMessage): void => {
    if (over) return;
    try {
      events.message(messageOf(message));
    } catch (error) {
      // Called by a timer's phase, not by the client: whatever is thrown here would end the process.
      lose(error);
    }
  };
  return {
    count: async (queue) => (await channel.queueDeclare({ queue, passive: true })).messageCount,
    async consume(queue, prefetch, priority) {
      await channel.basicQos({ prefetchCount: prefetch });
      const given = priority === undefined ? {} : { arguments: { "x-priority": priority } };
      return (await channel.basicConsume({ queue, ...given }, take)).consumerTag;
    },
    cancel: async (consumerTag) => void (await channel.basicCancel({ consumerTag })),
    ack: (deliveryTag, multiple) => channel.basicAck({ deliveryTag, multiple }),
    giveBack: (deliveryTag) => channel.basicNack({ deliveryTag, requeue: true }),
    async close() {
      over = true;
      await channel.close();
    },
  };
}

const kept: unique symbol = Symbol("properties");

interface HeaderFrame {
  fields: object;
}

/**
 * This client parses bodies that say they are JSON or text, and gives no bytes: large numbers would be rounded, and the
 * same message have another fingerprint than by another client. Keeping the properties from it until the body is there
 * keeps it from that. Throws where the client has been rebuilt so that this is not possible.
 */
function keepBodies(channel: object): void {
  const internal = channel as { _onHeader?: (frame: HeaderFrame) => void };
  const original = internal._onHeader;
  if (typeof original !== "function") throw unknownClient();
  internal._onHeader = function (frame) {
    frame.fields = { [kept]: frame.fields };
    original.call(this, frame);
  };
}

function messageOf(message: RabbitmqClientMessage): AmqpMessage {
  const { deliveryTag, redelivered, exchange, routingKey, body } = message;
  const properties = (message as { [kept]?: Readonly<Record<string, unknown>> })[kept];
  if (!isUint8Array(body) || properties === undefined) throw unknownClient();
  return { tag: deliveryTag, redelivered, exchange, routingKey, body, properties };
}

const unknownClient = (): InboxError =>
  new InboxError(
    "source-failed",
    "This version of rabbitmq-client is not known: it gives no bytes of bodies. Use rabbitmq-client 5, or amqplib.",
  );
