import type { QueryResult } from "../../statement.ts";

/** The part of a client of `postgres` (3.4) that is used. */
export interface PostgresJsLike extends PostgresJsHandle {
  reserve(): Promise<PostgresJsReserved>;
  begin(...args: never[]): unknown;
  readonly options: { readonly max: number };
}

/** A handle whose statements run in order: a transaction's, or a reserved connection's. */
export interface PostgresJsHandle {
  unsafe(text: string, values?: unknown[], options?: object): PromiseLike<PostgresJsResult>;
}

/** A reserved connection. */
export interface PostgresJsReserved extends PostgresJsHandle {
  release(): void;
}

/** The rows, with the count and the command on the array. `state` is the server connection that answered. */
export interface PostgresJsResult extends Array<unknown> {
  readonly count?: number | null;
  readonly command?: string | null;
  readonly state?: { readonly pid: number | null };
}

/** One statement's answer in the store's words. The last one's where the text held several. */
export function asResult<Row>(answer: PostgresJsResult): QueryResult<Row> {
  const several = answer.command === undefined && Array.isArray(answer[answer.length - 1]);
  const last = several ? (answer[answer.length - 1] as PostgresJsResult) : answer;
  return { rows: [...last] as Row[], rowCount: last.count ?? null, command: firstWord(last.command) };
}

function firstWord(command: string | null | undefined): string {
  return command?.split(" ")[0] ?? "";
}
