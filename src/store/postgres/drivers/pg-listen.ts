import type { PgPoolLike } from "./pg-client.ts";

/** The part of a `pg` client of one's own that is used. */
interface PgListener {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  on(event: "notification" | "end" | "error", listener: () => void): unknown;
  end(): Promise<unknown>;
}

/** As `Driver.listen`, on a client made as the pool makes its own: none of the pool's connections is taken. */
export async function pgListen(
  pool: PgPoolLike,
  channel: string,
  onNotification: () => void,
  onLost: () => void,
): Promise<() => void> {
  const Client = pool.Client as new (config: unknown) => PgListener;
  const client = new Client(pool.options);
  const end = (): void => void client.end().catch(() => undefined);
  client.on("notification", onNotification);
  client.on("end", onLost);
  client.on("error", onLost);
  try {
    await client.connect();
    await client.query(`listen "${channel}"`);
    return end;
  } catch (error) {
    end();
    throw error;
  }
}
