import type { QueryResult } from "../statement.ts";

/**
 * What the store needs from a PostgreSQL driver. An adapter is a file in `drivers/`; one contract suite runs against
 * all of them (`test/store/drivers/contract.ts`).
 */
export interface Driver {
  readonly name: string;
  /** Whether statements sent without waiting travel together. Where not, they are sent one after another. */
  readonly pipelined: boolean;
  /** How many connections its pool can give; `undefined` where it cannot be known. */
  readonly maxConnections: number | undefined;
  /**
   * Takes a connection from the pool. Throws `store-unavailable` after `timeoutMs`; a connection that comes too late
   * goes back to the pool.
   */
  connect(timeoutMs: number): Promise<DriverConnection>;
  /**
   * Listens for NOTIFY on a connection of its own until the returned function is called. `channel` is a plain name.
   * Rejects if that connection cannot be had; calls `onLost` when it is lost, as far as the driver tells. Missing where
   * the driver cannot make such a connection.
   */
  listen?(channel: string, onNotification: () => void, onLost: () => void): Promise<() => void>;
}

export type TransactionStatus = "idle" | "open" | "failed" | "lost" | "unknown";

/**
 * One connection, held by one user. It never moves to another server connection: once the connection is lost every
 * later `query` rejects with `connection-lost`, even where the driver would have reconnected.
 */
export interface DriverConnection {
  /**
   * Sends one statement. Statements are executed in the order of the calls, and each promise settles with its own
   * statement's answer. Never throws synchronously. A rejected promise that nobody awaits must not end the process:
   * the adapter marks its promises as handled. The server's error is passed on as the driver made it (SQLSTATE in
   * `code`); a lost connection rejects with an `InboxError` of code `connection-lost` whose cause is the driver's error.
   * Values are strings, numbers, booleans, null, Date, Uint8Array or what the driver takes beyond that.
   */
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>>;
  /** What the server said last, without a round trip. `unknown` where the driver does not tell. */
  status(): TransactionStatus;
  /** Called once when the connection is lost while held; at once if it already is. */
  onLost(listener: (error: Error) => void): void;
  /** Gives the connection back to the pool. Twice is harmless. Discards it if it is lost or not idle. */
  release(): void;
  /** Closes the connection instead of giving it back: after anything that leaves its state in doubt. */
  discard(): void;
}
