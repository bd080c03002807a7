import type { AmqpChannel, AmqpClient, ChannelEvents, ConnectionEvents } from "./client.ts";
import { holdConnection } from "./held-connection.ts";

/** The part of what `amqplib.connect(...)` resolves with that is used. */
export interface AmqplibConnection {
  createChannel(): Promise<AmqplibChannel>;
  close(): Promise<void>;
  on(name: "error", listener: (error: Error) => void): unknown;
  on(name: "close", listener: (error?: Error) => void): unknown;
  on(name: "blocked", listener: (reason: string) => void): unknown;
}

/** The part of an amqplib `Channel` that is used. */
export interface AmqplibChannel {
  checkQueue(queue: string): Promise<{ messageCount: number }>;
  prefetch(count: number): Promise<unknown>;
  consume(
    queue: string,
    listener: (message: AmqplibMessage | null) => void,
    options?: { priority?: number },
  ): Promise<{ consumerTag: string }>;
  cancel(consumerTag: string): Promise<unknown>;
  ack(message: never, allUpTo?: boolean): void;
  nack(message: never, allUpTo?: boolean, requeue?: boolean): void;
  close(): Promise<void>;
  on(name: "error", listener: (error: Error) => void): unknown;
  on(name: "close", listener: () => void): unknown;
}

/** A message of amqplib. */
export interface AmqplibMessage {
  readonly fields: {
    readonly deliveryTag: number;
    readonly redelivered: boolean;
    readonly exchange: string;
    readonly routingKey: string;
  };
  readonly properties: object;
  readonly content: Uint8Array;
}

/** Connects with `connect` when there is no connection; amqplib itself does not connect again. */
export function amqplibClient(
  connect: () => Promise<AmqplibConnection>,
  openTimeoutMs: number,
  { blocked }: ConnectionEvents,
): AmqpClient {
  let version: string | undefined;
  const held = holdConnection(connect, openTimeoutMs, {
    made(connection) {
      connection.on("blocked", blocked);
      version = versionOf(connection);
    },
  });
  return {
    open: (events) =>
      held.open(async (connection) => channelOf(await connection.createChannel(), events, held.lastError)),
    version: () => version,
    close: held.close,
  };
}

function channelOf(
  channel: AmqplibChannel,
  events: ChannelEvents,
  connectionError: () => Error | undefined,
): AmqpChannel {
  let lastError: Error | undefined;
  let over = false;
  let closed: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => (closed = resolve));
  const lose = (error: Error): void => {
    if (over) return;
    over = true;
    events.lost(error);
  };
  channel.on("error", (error) => (lastError = error));
  channel.on("close", () => {
    closed();
    lose(lastError ?? connectionError() ?? new Error("the channel was closed"));
  });
  const message = (tag: number): never => ({ fields: { deliveryTag: tag } }) as never;
  const take = (given: AmqplibMessage | null): void => {
    if (given === null) return lose(new Error("the broker cancelled the consumer"));
    if (over) return;
    const { deliveryTag, redelivered, exchange, routingKey } = given.fields;
    const properties = given.properties as Record<string, unknown>;
    events.message({ tag: deliveryTag, redelivered, exchange, routingKey, properties, body: given.content });
  };
  return {
    count: async (queue) => (await channel.checkQueue(queue)).messageCount,
    async consume(queue, prefetch, priority) {
      await channel.prefetch(prefetch);
      return (await channel.consume(queue, take, priority === undefined ? {} : { priority })).consumerTag;
    },
    cancel: async (consumerTag) => void (await channel.cancel(consumerTag)),
    ack: (tag, upTo) => channel.ack(message(tag), upTo),
    giveBack: (tag) => channel.nack(message(tag), false, true),
    async close() {
      over = true;
      // If the connection is lost meanwhile, amqplib never answers.
      await Promise.race([channel.close(), gone]);
    },
  };
}

function versionOf(connection: object): string | undefined {
  const { connection: inner } = connection as {
    connection?: { serverProperties?: { version?: unknown } };
  };
  const version = inner?.serverProperties?.version;
  return typeof version === "string" ? version : undefined;
}
