import { InboxError } from "../../errors.ts";
import { showValue } from "../../message/show-value.ts";
import { amqplibClient, type AmqplibConnection } from "./amqplib.ts";
import type { AmqpClient, ConnectionEvents } from "./client.ts";
import { connectWithin } from "./connect-within.ts";
import { rabbitmqClient, type RabbitmqClientConnection } from "./rabbitmq-client.ts";

/**
 * A `Connection` of `rabbitmq-client`, which stays the caller's, or a function that makes a connection of the source's
 * own: `() => amqplib.connect(url)`, `() => new Connection(url)`.
 */
export type RabbitmqClient =
  | RabbitmqClientConnection
  | (() => RabbitmqClientConnection | Promise<AmqplibConnection> | Promise<RabbitmqClientConnection>);

/** Throws `invalid-option` for what is neither. */
export function checkClient(client: unknown): void {
  if (typeof client === "function" || hasMethod(client, "acquire")) return;
  const hint = hasMethod(client, "createChannel")
    ? "amqplib does not connect again by itself, so give a function: () => amqplib.connect(url)."
    : "Give a Connection of rabbitmq-client, or a function such as () => amqplib.connect(url).";
  throw new InboxError("invalid-option", `client cannot be used: it is ${showValue(client)}. ${hint}`);
}

/**
 * The port for whichever client it is; what a function gives is seen at its first call. It may take `timeoutMs`
 * milliseconds to connect, and a channel of amqplib as long to open.
 */
export function detectClient(
  client: RabbitmqClient,
  timeoutMs: number,
  events: ConnectionEvents,
): AmqpClient {
  if (typeof client !== "function") return rabbitmqClient(client, false, events);
  const make = (): Promise<unknown> => connectWithin(client, timeoutMs);
  let version: () => string | undefined = () => undefined;
  let current: Promise<AmqpClient> | undefined;

  async function first(): Promise<AmqpClient> {
    const made = await make();
    if (hasMethod(made, "acquire")) return rabbitmqClient(made as RabbitmqClientConnection, true, events);
    let next: unknown = made;
    const connect = async (): Promise<AmqplibConnection> => {
      const connection = next ?? (await make());
      next = undefined;
      checkConnection(connection);
      return connection as AmqplibConnection;
    };
    const amqplib = amqplibClient(connect, timeoutMs, events);
    version = () => amqplib.version();
    return amqplib;
  }

  return {
    async open(channelEvents) {
      const starting = (current ??= first());
      starting.catch(() => (current = undefined));
      return (await starting).open(channelEvents);
    },
    version: () => version(),
    close: async () => (await current?.catch(() => undefined))?.close(),
  };
}

function checkConnection(made: unknown): void {
  if (hasMethod(made, "createChannel")) return;
  throw new InboxError(
    "invalid-option",
    `client() must give a connection of amqplib or rabbitmq-client; it gave ${showValue(made)}.`,
  );
}

const hasMethod = (value: unknown, name: string): boolean =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as Record<string, unknown>)[name] === "function";
