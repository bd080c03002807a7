import type { QueryResult } from "../../statement.ts";

/** The part of a client of `postgres` (3.4) that is used. */
export interface PostgresJsLike extends PostgresJsHandle {
  reserve(): Promise<PostgresJsReserved>;
  listen?(channel: string, onNotification: () => void): Promise<{ unlisten(): Promise<unknown> }>;
  readonly options: {
    readonly max: number;
    readonly prepare?: boolean | undefined;
    readonly shared?: { retries: number } | undefined;
    readonly fetch_types?: boolean | undefined;
    readonly transform?:
      { readonly [part in "column" | "value" | "row"]?: { readonly from?: unknown } | undefined } | undefined;
  };
}

/** A handle whose statements run in order: a transaction's, or a reserved connection's. */
export interface PostgresJsHandle {
  unsafe(text: string, values?: unknown[], options?: object): PromiseLike<PostgresJsResult>;
}

/** A reserved connection. */
export interface PostgresJsReserved extends PostgresJsHandle {
  release(): void;
}

/** The connection object of `postgres`, as its own `sql.begin` uses it. */
export interface PostgresJsConnection {
  /** Called, and then forgotten, in the turn in which the socket closes. */
  onclose?: ((error: unknown) => void) | null;
  /** Started when it comes to the client's list of open, idle connections, cancelled when it leaves it. */
  idleTimer: { start(): void; cancel(): void };
  terminate(): void;
}

/** The rows, with the count and the command on the array. `state` is the server connection that answered. */
export interface PostgresJsResult extends Array<unknown> {
  readonly count?: number | null;
  readonly command?: string | null;
  readonly state?: { readonly pid: number | null };
}

/** One statement's answer in the store's words, the last one's where the text held several; and who answered it. */
export function asResult<Row>(answer: PostgresJsResult): QueryResult<Row> & { readonly pid: number | null } {
  const several = answer.command === undefined && Array.isArray(answer[answer.length - 1]);
  const last = several ? (answer[answer.length - 1] as PostgresJsResult) : answer;
  return {
    rows: [...last] as Row[],
    rowCount: last.count ?? null,
    command: last.command?.split(" ")[0] ?? "",
    pid: last.state?.pid ?? null,
  };
}
