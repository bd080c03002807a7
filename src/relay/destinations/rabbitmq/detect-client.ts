import { InboxError } from "../../../errors.ts";
import { showValue } from "../../../message/show-value.ts";
import { connectWithin } from "../../../sources/rabbitmq/connect-within.ts";
import { amqplibPublisher, type AmqplibPublishConnection } from "./amqplib.ts";
import type { PublishClient } from "./publish-channel.ts";
import { rabbitmqClientPublisher, type RabbitmqClientPublishConnection } from "./rabbitmq-client.ts";

/**
 * A `Connection` of `rabbitmq-client`, which stays the caller's, or a function that makes a connection of the
 * destination's own: `() => amqplib.connect(url)`, `() => new Connection(url)`.
 */
export type RabbitmqPublishClient =
  | RabbitmqClientPublishConnection
  | (() =>
      | RabbitmqClientPublishConnection
      | Promise<AmqplibPublishConnection>
      | Promise<RabbitmqClientPublishConnection>);

/** Throws `invalid-option` for what is neither. */
export function checkPublishClient(client: unknown): void {
  if (typeof client === "function" || hasMethod(client, "acquire")) return;
  const hint = hasMethod(client, "createConfirmChannel")
    ? "amqplib does not connect again by itself, so give a function: () => amqplib.connect(url)."
    : "Give a Connection of rabbitmq-client, or a function such as () => amqplib.connect(url).";
  throw new InboxError("invalid-option", `client cannot be used: it is ${showValue(client)}. ${hint}`);
}

/**
 * The port for whichever client it is; what a function gives is seen at its first call. It may take `timeoutMs`
 * milliseconds to connect, and a channel of amqplib as long to open.
 */
export function detectPublishClient(client: RabbitmqPublishClient, timeoutMs: number): PublishClient {
  if (typeof client !== "function") return rabbitmqClientPublisher(client, false);
  const make = (): Promise<unknown> => connectWithin(client, timeoutMs);
  let known: PublishClient | undefined;
  let current: Promise<PublishClient> | undefined;

  async function first(): Promise<PublishClient> {
    const made = await make();
    if (hasMethod(made, "acquire")) {
      return rabbitmqClientPublisher(made as RabbitmqClientPublishConnection, true);
    }
    let next: unknown = made;
    const connect = async (): Promise<AmqplibPublishConnection> => {
      const connection = next ?? (await make());
      next = undefined;
      if (hasMethod(connection, "createConfirmChannel")) return connection as AmqplibPublishConnection;
      throw new InboxError(
        "invalid-option",
        `client() must give a connection of amqplib or rabbitmq-client; it gave ${showValue(connection)}.`,
      );
    };
    return amqplibPublisher(connect, timeoutMs);
  }

  return {
    async open(events) {
      const starting = (current ??= first());
      starting.catch(() => (current = undefined));
      known = await starting;
      return known.open(events);
    },
    blocked: () => known?.blocked(),
    close: async () => (await current?.catch(() => undefined))?.close(),
  };
}

const hasMethod = (value: unknown, name: string): boolean =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as Record<string, unknown>)[name] === "function";
