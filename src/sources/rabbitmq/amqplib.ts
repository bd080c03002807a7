import type { AmqpChannel, AmqpClient, ChannelEvents, ConnectionEvents } from "./client.ts";

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
  { blocked }: ConnectionEvents,
): AmqpClient {
  let current: Promise<AmqplibConnection> | undefined;
  let lastError: Error | undefined;
  let version: string | undefined;

  async function start(forget: () => void): Promise<AmqplibConnection> {
    const connection = await connect();
    const lose = (error?: Error): void => {
      lastError = error ?? lastError;
      forget();
    };
    lastError = undefined;
    connection.on("error", lose);
    connection.on("close", lose);
    connection.on("blocked", blocked);
    version = versionOf(connection);
    return connection;
  }

  function connected(): Promise<AmqplibConnection> {
    if (current !== undefined) return current;
    const forget = (): void => {
      if (current === starting) current = undefined;
    };
    const starting = start(forget);
    starting.catch(forget);
    return (current = starting);
  }

  async function drop(): Promise<void> {
    const last = current;
    current = undefined;
    await last?.then((connection) => connection.close()).catch(() => undefined);
  }

  return {
    async open(events) {
      const from = connected();
      const connection = await from;
      try {
        return channelOf(await connection.createChannel(), events, () => lastError);
      } catch (error) {
        // A connection that opens no channel is of no use; the next call makes another one.
        if (current === from) void drop();
        throw error;
      }
    },
    version: () => version,
    close: drop,
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
