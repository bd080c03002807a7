import { InboxError } from "../../../errors.ts";
import type { QueryResult } from "../../statement.ts";

/** A statement that was asked for and has not been answered. */
export interface PendingStatement {
  readonly text: string;
  readonly values: readonly unknown[] | undefined;
  resolve(result: QueryResult<never>): void;
  reject(error: unknown): void;
}

/** How one held connection sends its statements. */
export interface Wire {
  send(statement: PendingStatement): void;
  /** How many statements are not answered yet. */
  unanswered(): number;
  /** Rejects every statement that is not answered, and stops listening. */
  close(error: Error): void;
}

/** What a wire tells the connection it belongs to. */
export interface WireEvents {
  /** The connection cannot be used any more, or its state is in doubt. */
  lost(cause: unknown): void;
  /** The status letter of ReadyForQuery. */
  ready(status: string | undefined): void;
}

const maxParameters = 65_535;

/** Why a statement cannot be sent at all, or null. Sending it would break the protocol for its neighbours. */
export function refusal(text: unknown, values: readonly unknown[] | undefined): Error | null {
  if (typeof text !== "string")
    return new TypeError(`A statement's text is a string, not ${text === null ? "null" : typeof text}.`);
  if (text.includes("\0")) return new TypeError("A statement's text cannot hold a NUL character.");
  if (values !== undefined && !Array.isArray(values))
    return new TypeError("A statement's values are an array.");
  if (values && values.length > maxParameters) {
    return new RangeError(
      `A statement takes at most ${maxParameters} parameters, this one has ${values.length}. Pass arrays and unnest($1::text[]).`,
    );
  }
  return null;
}

/** The error every statement of a lost connection gets. `cause` is what the driver said. */
export function connectionLost(cause: unknown): InboxError {
  return new InboxError("connection-lost", `The connection to PostgreSQL was lost: ${textOf(cause)}`, {
    cause,
  });
}

/** The error of a `connect` that gave no connection. */
export function storeUnavailable(reason: string, cause?: unknown): InboxError {
  const options = cause === undefined ? undefined : { cause };
  return new InboxError("store-unavailable", `No connection to PostgreSQL could be had: ${reason}`, options);
}

/** An error's text for a person; an AggregateError (several addresses of one host) has none of its own. */
export function textOf(cause: unknown): string {
  if (cause instanceof AggregateError && cause.message === "") return cause.errors.map(textOf).join("; ");
  if (cause instanceof Error) return cause.message || ((cause as { code?: string }).code ?? cause.name);
  return String(cause);
}
