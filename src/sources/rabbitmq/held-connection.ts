import { within } from "./within.ts";

/** What of a connection is needed to see that it is gone. */
interface Losable {
  close(): Promise<void>;
  on(name: "error", listener: (error: Error) => void): unknown;
  on(name: "close", listener: (error?: Error) => void): unknown;
}

/** One connection at a time, made when it is needed and made anew when it was lost: amqplib does not connect again. */
export interface HeldConnection<Connection> {
  /** Opens something on the connection. One that cannot open it is of no use: the next call makes another one. */
  open<Opened>(open: (connection: Connection) => Promise<Opened>): Promise<Opened>;
  /** What the last connection ended with, since the one before. */
  lastError(): Error | undefined;
  /** Never rejects. */
  close(): Promise<void>;
}

export interface ConnectionListener<Connection> {
  /** A connection is there. */
  made(connection: Connection): void;
  /** It is there no more. */
  gone?(): void;
}

/** `openTimeoutMs`: how long opening something may take, in milliseconds. `connect` must end by itself. */
export function holdConnection<Connection extends Losable>(
  connect: () => Promise<Connection>,
  openTimeoutMs: number,
  listener: ConnectionListener<Connection>,
): HeldConnection<Connection> {
  let current: Promise<Connection> | undefined;
  let lastError: Error | undefined;

  async function start(forget: () => void): Promise<Connection> {
    const connection = await connect();
    const lose = (error?: Error): void => {
      lastError = error ?? lastError;
      forget();
    };
    lastError = undefined;
    connection.on("error", lose);
    connection.on("close", lose);
    listener.made(connection);
    return connection;
  }

  function connected(): Promise<Connection> {
    if (current !== undefined) return current;
    const forget = (): void => {
      if (current !== starting) return;
      current = undefined;
      listener.gone?.();
    };
    const starting = start(forget);
    starting.catch(forget);
    return (current = starting);
  }

  async function close(): Promise<void> {
    const last = current;
    current = undefined;
    listener.gone?.();
    await last?.then((connection) => connection.close()).catch(() => undefined);
  }

  return {
    async open(open) {
      const from = connected();
      const connection = await from;
      try {
        return await within(open(connection), openTimeoutMs, "opening a channel");
      } catch (error) {
        if (current === from) void close();
        throw error;
      }
    },
    lastError: () => lastError,
    close,
  };
}
