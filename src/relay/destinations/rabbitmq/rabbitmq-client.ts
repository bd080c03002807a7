import { codeOf } from "../../../errors.ts";
import type { PublishChannel, PublishClient, PublishEvents } from "./publish-channel.ts";

/** The part of a `Connection` of `rabbitmq-client` that publishing uses. */
export interface RabbitmqClientPublishConnection {
  acquire(options?: { emitErrorsFromChannel?: boolean }): Promise<RabbitmqClientConfirmChannel>;
  close(): Promise<void>;
  on(name: "error", listener: (error: unknown) => void): unknown;
  on(name: "connection.blocked", listener: (reason: string) => void): unknown;
  on(name: "connection.unblocked", listener: () => void): unknown;
  on(name: "connection", listener: () => void): unknown;
  off(name: "error", listener: (error: unknown) => void): unknown;
  off(name: "connection.blocked", listener: (reason: string) => void): unknown;
  off(name: "connection.unblocked", listener: () => void): unknown;
  off(name: "connection", listener: () => void): unknown;
}

/** The part of a `Channel` of `rabbitmq-client` that is used. */
export interface RabbitmqClientConfirmChannel {
  confirmSelect(): Promise<void>;
  basicPublish(params: object, body: Buffer): Promise<void>;
  close(): Promise<void>;
  on(name: "close", listener: () => void): unknown;
  on(name: "error", listener: (error: unknown) => void): unknown;
  on(name: "basic.return", listener: (message: RabbitmqClientReturn) => void): unknown;
}

/** A message that came back. */
export interface RabbitmqClientReturn {
  readonly exchange?: string;
  readonly routingKey?: string;
  readonly replyText?: string;
  readonly messageId?: string;
}

/** `connection` reconnects by itself. It is closed with the destination only where it is the destination's own. */
export function rabbitmqClientPublisher(
  connection: RabbitmqClientPublishConnection,
  own: boolean,
): PublishClient {
  let lastError: unknown;
  let blocked: string | undefined;
  // Without a listener a lost connection would end the process. What it means is seen at the channel.
  const onError = (error: unknown): void => void (lastError = error);
  const onBlocked = (reason: string): void => void (blocked = reason || "for no reason that it gives");
  const onFree = (): void => void (blocked = undefined);
  connection.on("error", onError);
  connection.on("connection.blocked", onBlocked);
  connection.on("connection.unblocked", onFree);
  connection.on("connection", onFree);
  return {
    async open(events) {
      lastError = undefined;
      const channel = await connection.acquire({ emitErrorsFromChannel: true });
      const opened = channelOf(channel, events, () => lastError);
      await channel.confirmSelect();
      return opened;
    },
    blocked: () => blocked,
    async close() {
      if (own) await connection.close();
      connection.off("connection.blocked", onBlocked);
      connection.off("connection.unblocked", onFree);
      connection.off("connection", onFree);
      if (!own) connection.off("error", onError);
    },
  };
}

function channelOf(
  channel: RabbitmqClientConfirmChannel,
  events: PublishEvents,
  connectionError: () => unknown,
): PublishChannel {
  let lastError: unknown;
  let over = false;
  const lose = (): void => {
    if (over) return;
    over = true;
    const reason = lastError ?? connectionError();
    events.lost(reason instanceof Error ? reason : new Error("the channel was closed"));
  };
  channel.on("error", (error) => (lastError ??= error));
  // The error of a connection is told after its channels have closed.
  channel.on("close", () => setImmediate(lose));
  channel.on("basic.return", ({ exchange = "", routingKey = "", replyText = "", messageId }) =>
    events.returned({ exchange, routingKey, messageId, reason: replyText }),
  );
  return {
    publish({ exchange, routingKey, body, ...properties }, confirmed) {
      const params = { exchange, routingKey, ...properties, durable: true, mandatory: true };
      channel.basicPublish(params, body).then(
        // This client tells of a return one turn later than of the confirmation that comes behind it.
        () => setImmediate(() => over || confirmed(true)),
        (error: unknown) => {
          const code = codeOf(error);
          if (code === "NACK") return over || confirmed(false);
          // The broker's reason is given to the first that is unconfirmed, whichever it was.
          if (code !== "CH_CLOSE") lastError ??= error;
        },
      );
    },
    async close() {
      over = true;
      await channel.close();
    },
  };
}
