import { codeOf, InboxError } from "../errors.ts";
import type { Message } from "../message/message.ts";
import { showValue } from "../message/show-value.ts";
import type { LaneTransaction } from "../store/store.ts";
import type { QueryResult, Statement } from "../store/statement.ts";
import { classifyError, errorText, isStoreAway, type ErrorClass } from "./classify-error.ts";
import { isQuarantine, isRetryIn, type Handler } from "./handler.ts";
import { createInterrupt } from "./interrupt.ts";
import type { Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { readPayloads, runHandlers, type Work } from "./run-handlers.ts";
import { holdsSeveral, sqlOutline } from "./sql-outline.ts";
import { controlsTransaction } from "./transaction-control.ts";

export interface DryRunOptions {
  /** Whether values are shown as they are. Default `false`: by their kind and length. */
  readonly values?: boolean | undefined;
}

/** What a handler did with a message, all of it undone. */
export interface DryRun {
  readonly answer: DryRunAnswer;
  /** In the order they were sent; the handler's own and those it returned. */
  readonly statements: readonly DryRunStatement[];
  /** What it asked its outbox for. Nothing of it is sent. */
  readonly effects: readonly DryRunEffect[];
}

/** How the handler would have ended. `failed`: `code` is an error's code or SQLSTATE, `""` where it has none. */
export type DryRunAnswer =
  | { readonly kind: "done"; readonly result?: unknown }
  | { readonly kind: "retry-in"; readonly afterMs: number }
  | { readonly kind: "quarantine"; readonly reason: string }
  | { readonly kind: "failed"; readonly code: string; readonly class: ErrorClass; readonly error: string };

export interface DryRunStatement {
  readonly text: string;
  /** For people: kinds and lengths, or the values themselves with `values: true`. */
  readonly values: readonly string[];
  /** The command tag's first word; `undefined` if the statement failed or was not answered. */
  readonly command?: string | undefined;
  readonly rowCount?: number | null | undefined;
  readonly error?: string | undefined;
}

export interface DryRunEffect {
  readonly destination: string;
  readonly id: string;
  readonly key?: string | undefined;
  readonly type?: string | undefined;
  /** For people: its length, or what it holds with `values: true`. */
  readonly payload: string;
}

/** How long a statement may wait for a lock of running work, in milliseconds. */
const lockTimeoutMs = 2_000;

/**
 * Runs a handler for one message in a transaction that is always rolled back, deferred constraints checked, nothing
 * claimed. A statement that would end the transaction, or might hold a second one, is refused and fails the run; should
 * one get through all the same, the answer says so. Effects outside of `tx` are as real as ever. Rejects only if the
 * database is away.
 */
export async function dryRun(
  context: LaneContext,
  message: Message,
  handler: Handler,
  itemOf: (message: Message, handler: Handler) => Item,
  options: DryRunOptions = {},
): Promise<DryRun> {
  const { settings } = context;
  const tx = await context.store.begin(context.name, {
    isolation: settings.isolation,
    claimLockTimeoutMs: settings.claimLockTimeoutMs,
    workLockTimeoutMs: lockTimeoutMs,
    connectTimeoutMs: settings.connectTimeoutMs,
  });
  const interrupt = createInterrupt(settings.handlerTimeoutMs, context.signal);
  tx.onLost((error) => interrupt.now(error));
  const recorded = recording(tx, options.values === true);
  try {
    await tx.query({ text: `set local lock_timeout = ${lockTimeoutMs}` });
    const mark = await transactionMark(tx);
    const readable = await readPayloads(context, [itemOf(message, handler)]);
    const unreadable = readable.unreadable[0]?.[1];
    if (unreadable !== undefined) return recorded.as(failed(context, unreadable));
    // Handlers that only try are no sign that a consumer leaves its transaction alone.
    const trying: LaneContext = { ...context, usage: { settled: () => undefined } };
    const work = await runHandlers(trying, recorded.transaction, readable, interrupt);
    const failure = recorded.refused() ?? (await failureOf(work)) ?? (await checkConstraints(tx));
    if ((await transactionMark(tx).catch(() => mark)) !== mark) {
      const text = "The handler left its transaction: what it did may be committed.";
      return recorded.as(failed(context, new InboxError("invalid-handler", text)));
    }
    return recorded.as(failure === undefined ? done(work) : answerOf(context, failure));
  } catch (error) {
    if (isStoreAway(error)) throw error;
    return recorded.as(failed(context, error));
  } finally {
    interrupt.close();
    await tx.rollback();
  }
}

const done = (work: Work): DryRunAnswer => {
  const result = work.kind === "done" ? work.results[0] : undefined;
  return result === undefined ? { kind: "done" } : { kind: "done", result };
};

function answerOf(context: LaneContext, failure: unknown): DryRunAnswer {
  if (isRetryIn(failure)) return { kind: "retry-in", afterMs: failure.afterMs };
  if (isQuarantine(failure)) return { kind: "quarantine", reason: failure.reason };
  return failed(context, failure);
}

const failed = (context: LaneContext, failure: unknown): DryRunAnswer => ({
  kind: "failed",
  code: codeOf(failure),
  class: classifyError(failure, context.settings.classifyError),
  error: errorText(failure),
});

/** Two statements of one transaction have the same. */
async function transactionMark(tx: LaneTransaction): Promise<string> {
  const { rows } = await tx.query<{ mark: string }>({
    text: "select transaction_timestamp()::text || ' ' || txid_current()::text as mark",
  });
  return rows[0]?.mark ?? "";
}

/** What keeps the work from being committed: a returned statement first, then what was thrown. */
async function failureOf(work: Work): Promise<unknown> {
  for (const { statement, answer } of work.kind === "done" ? work.statements : work.earlier) {
    try {
      const { rowCount } = await answer;
      if (statement.expectRows === undefined || rowCount === statement.expectRows) continue;
      const text = `A statement changed ${rowCount} rows where it must change ${statement.expectRows}.`;
      return new InboxError("unexpected-row-count", text);
    } catch (error) {
      return error;
    }
  }
  return work.kind === "blamed" ? work.failure : undefined;
}

/** What would have failed at COMMIT. */
async function checkConstraints(tx: LaneTransaction): Promise<unknown> {
  try {
    await tx.query({ text: "set constraints all immediate" });
    return undefined;
  } catch (error) {
    return error;
  }
}

interface Recording {
  readonly transaction: LaneTransaction;
  /** All that was recorded, with how it ended. */
  as(answer: DryRunAnswer): DryRun;
  /** The first statement that was refused, as an error. */
  refused(): InboxError | undefined;
}

/** The transaction with a book of what was sent. What might end it is not sent. */
function recording(tx: LaneTransaction, showsValues: boolean): Recording {
  const statements: DryRunStatement[] = [];
  const effects: DryRunEffect[] = [];
  let refused: InboxError | undefined;
  return {
    as: (answer) => ({ answer, statements, effects }),
    refused: () => refused,
    transaction: {
      ...tx,
      sendEffects(list) {
        for (const { destination, id, key, type, payload } of list) {
          effects.push({
            destination,
            id,
            key,
            type,
            payload: showsValues ? bodyOf(payload) : kindOf(payload),
          });
        }
        return tx.sendEffects(list);
      },
      // One by one, so that the database says of each whether it conflicts.
      bundleEffects: undefined,
      query<Row>(statement: Statement): Promise<QueryResult<Row>> {
        const { text, values = [] } = statement;
        const line: { -readonly [Key in keyof DryRunStatement]: DryRunStatement[Key] } = {
          text,
          values: values.map((value) => (showsValues ? shown(value) : kindOf(value))),
        };
        statements.push(line);
        if (controlsTransaction(text) || holdsSeveral(sqlOutline(text))) {
          refused ??= new InboxError(
            "invalid-handler",
            "A dry run sends one statement at a time, and none that ends its transaction.",
          );
          line.error = refused.message;
          return Promise.reject(refused);
        }
        const answer = tx.query<Row>(statement);
        answer.then(
          ({ command, rowCount }) => Object.assign(line, { command, rowCount }),
          (error: unknown) => (line.error = errorText(error)),
        );
        return answer;
      },
    },
  };
}

const bodyOf = (payload: Uint8Array | null): string =>
  payload === null ? "null" : showValue(Buffer.from(payload).toString(), 2_000);

const shown = (value: unknown): string =>
  value instanceof Date ? value.toISOString() : showValue(value, 200);

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return `a text of ${value.length}`;
  if (value instanceof Date) return "a time";
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  return Array.isArray(value) ? `an array of ${value.length}` : `a ${typeof value}`;
}
