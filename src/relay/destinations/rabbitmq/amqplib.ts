import { holdConnection } from "../../../sources/rabbitmq/held-connection.ts";
import type { PublishChannel, PublishClient, PublishEvents } from "./publish-channel.ts";

/** The part of what `amqplib.connect(...)` resolves with that publishing uses. */
export interface AmqplibPublishConnection {
  createConfirmChannel(): Promise<AmqplibConfirmChannel>;
  close(): Promise<void>;
  on(name: "error", listener: (error: Error) => void): unknown;
  on(name: "close", listener: (error?: Error) => void): unknown;
  on(name: "blocked", listener: (reason: string) => void): unknown;
  on(name: "unblocked", listener: () => void): unknown;
}

/** The part of an amqplib `ConfirmChannel` that is used. */
export interface AmqplibConfirmChannel {
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: object,
    confirmed: (error: unknown) => void,
  ): boolean;
  close(): Promise<void>;
  on(name: "return", listener: (message: AmqplibReturn) => void): unknown;
  on(name: "error", listener: (error: Error) => void): unknown;
  on(name: "close", listener: () => void): unknown;
}

/** A message that came back. */
export interface AmqplibReturn {
  readonly fields: object;
  readonly properties: object;
}

/** Connects with `connect` when there is no connection; amqplib itself does not connect again. */
export function amqplibPublisher(
  connect: () => Promise<AmqplibPublishConnection>,
  openTimeoutMs: number,
): PublishClient {
  let blocked: string | undefined;
  const goesOn = (): void => void (blocked = undefined);
  const held = holdConnection(connect, openTimeoutMs, {
    made(connection) {
      connection.on("blocked", (reason) => (blocked = reason || "for no reason that it gives"));
      connection.on("unblocked", goesOn);
    },
    gone: goesOn,
  });
  return {
    open: (events) =>
      held.open(async (connection) =>
        channelOf(await connection.createConfirmChannel(), events, held.lastError),
      ),
    blocked: () => blocked,
    close: held.close,
  };
}

function channelOf(
  channel: AmqplibConfirmChannel,
  events: PublishEvents,
  connectionError: () => Error | undefined,
): PublishChannel {
  let lastError: Error | undefined;
  let over = false;
  let closed: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => (closed = resolve));
  const lose = (): void => {
    closed();
    if (over) return;
    over = true;
    events.lost(lastError ?? connectionError() ?? new Error("the channel was closed"));
  };
  channel.on("error", (error) => (lastError = error));
  channel.on("close", lose);
  channel.on("return", ({ fields, properties }) => {
    const { exchange, routingKey, replyText } = fields as Record<string, string>;
    const { messageId } = properties as { messageId?: unknown };
    events.returned({
      ...{ exchange: exchange ?? "", routingKey: routingKey ?? "", messageId },
      reason: replyText ?? "",
    });
  });
  return {
    publish({ exchange, routingKey, body, ...properties }, confirmed) {
      const options = { ...properties, persistent: true, mandatory: true };
      channel.publish(exchange, routingKey, body, options, (error) => {
        // The closing of the channel ends what is unconfirmed with an error of its own; that is told by `lost`.
        if (error === null || error === undefined) confirmed(true);
        else if (error instanceof Error && error.message === "message nacked") confirmed(false);
      });
    },
    async close() {
      over = true;
      // If the connection is lost meanwhile, amqplib never answers.
      await Promise.race([channel.close(), gone]);
    },
  };
}
