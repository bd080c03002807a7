import { within } from "./within.ts";

interface Closable {
  close(): Promise<void>;
  on(name: "error", listener: () => void): unknown;
}

/**
 * What `client` connects with; rejects when that takes longer than `ms` milliseconds. amqplib itself waits for ever for a
 * peer that accepts a connection and then says nothing, as proxies do whose broker is away.
 */
export function connectWithin(client: () => unknown, ms: number): Promise<unknown> {
  const connecting = (async () => client())();
  return within(connecting, ms, "connecting", async (late) => {
    // Nobody waits for it any more.
    const connection = late as Closable;
    connection.on("error", () => undefined);
    await connection.close();
  });
}
