import type { HandlerOutbox } from "./handler-outbox.ts";
import type { Message } from "../message/message.ts";
import { InboxError } from "../errors.ts";
import {
  isBuiltStatement,
  type BuiltStatement,
  type QueryResult,
  type Statement,
} from "../store/statement.ts";

/** The transaction of the claim, lent to one handler. Works until the handler has settled, then every use rejects. */
export interface HandlerTx {
  query<Row = Record<string, unknown>>(
    text: string | Statement,
    values?: readonly unknown[],
  ): Promise<QueryResult<Row>>;
}

/** What a handler is given beside its message. */
export interface HandlerContext {
  /** The transaction of the claim: what is written through it commits with the claim, or not at all. */
  readonly tx: HandlerTx;
  /** Effects outside the database, asked for in this very transaction and sent by a relay once it is committed. */
  readonly outbox: HandlerOutbox;
  /** Aborted when the work cannot be committed any more: connection lost, time over, process stopping. */
  readonly signal: AbortSignal;
}

// Known to every copy of this package in a process, as a statement's mark is.
const word: unique symbol = Symbol.for("transactional-inbox.word") as never;

/** The message cannot be handled now; its work is rolled back and it does not count as an attempt. */
export interface RetryIn {
  readonly [word]: "retry-in";
  readonly afterMs: number;
}

/** The message can never be handled; its work is rolled back and it goes to quarantine. */
export interface Quarantine {
  readonly [word]: "quarantine";
  readonly reason: string;
}

export const isRetryIn = (value: unknown): value is RetryIn => wordOf(value) === "retry-in";

export const isQuarantine = (value: unknown): value is Quarantine => wordOf(value) === "quarantine";

const wordOf = (value: unknown): unknown =>
  typeof value === "object" && value !== null && word in value ? value[word] : undefined;

/** Return it from a handler: run this message again, not before `afterMs` milliseconds. */
export const retryIn = (afterMs: number): RetryIn => {
  if (!Number.isFinite(afterMs) || afterMs < 0) {
    throw new RangeError(`retryIn takes milliseconds, 0 or more; got ${String(afterMs)}.`);
  }
  return { [word]: "retry-in", afterMs };
};

/** Return it from a handler: this message can never be handled, for this reason. */
export const quarantine = (reason: string): Quarantine => ({ [word]: "quarantine", reason });

/** What a handler may answer: nothing or a result of its own, statements for the lane to run, or a word. */
export type HandlerReturn<Result> =
  Result | BuiltStatement | readonly BuiltStatement[] | RetryIn | Quarantine;

/**
 * Handles one message. Either runs its statements on `tx`, one handler after another, or returns them: then the lane
 * sends them in order without waiting, which is several times as fast.
 */
export type MessageHandler<Data = unknown, Result = unknown> = (
  message: Message<Data>,
  context: HandlerContext,
) => HandlerReturn<Result> | Promise<HandlerReturn<Result>>;

/** Handles all new messages of a lane at once. */
export interface BatchHandler<Data = unknown> {
  readonly handleBatch: (messages: readonly Message<Data>[], context: HandlerContext) => unknown;
}

/** A handler of single messages, or of all that are new in a lane: `batch(...)`. */
export type Handler<Data = unknown, Result = unknown> = MessageHandler<Data, Result> | BatchHandler<Data>;

/**
 * Makes a handler that gets all new messages of its lane at once, and may act on all of them in one statement. It runs
 * on `tx` or returns statements. If it throws, halves of the batch are tried until the failing message is alone.
 */
export const batch = <Data = unknown>(
  handleBatch: (messages: readonly Message<Data>[], context: HandlerContext) => unknown,
): BatchHandler<Data> => ({ handleBatch });

/**
 * The statements in a handler's answer, or `undefined` where it is something else. Throws `invalid-handler` for a list
 * in which only some are statements: the rest would be left out without a word.
 */
export function statementsOf(value: unknown): readonly BuiltStatement[] | undefined {
  if (isBuiltStatement(value)) return [value];
  if (!Array.isArray(value)) return undefined;
  // An empty list says that there is nothing to do.
  if (value.every(isBuiltStatement)) return value;
  if (!value.some(isBuiltStatement)) return undefined;
  throw new InboxError(
    "invalid-handler",
    "The handler returned a list in which only some entries are statements. Leave out what is none.",
  );
}
