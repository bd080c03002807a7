import { InboxError } from "../errors.ts";
import { showValue } from "../message/show-value.ts";
import { validateData } from "../message/schema.ts";
import { withData } from "../message/create-message.ts";
import type { Message } from "../message/message.ts";
import type { NewEffect } from "../store/outbox.ts";
import type { LaneTransaction } from "../store/store.ts";
import { statement, type BuiltStatement, type QueryResult } from "../store/statement.ts";
import { collectEffects, type CollectedEffects, type SealedOutbox } from "./handler-outbox.ts";
import {
  isQuarantine,
  isRetryIn,
  statementsOf,
  type BatchHandler,
  type HandlerContext,
  type MessageHandler,
} from "./handler.ts";
import type { Interrupt } from "./interrupt.ts";
import type { Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { SealedTx } from "./sealed-tx.ts";
import { controlsTransaction, endsTransaction } from "./transaction-control.ts";

/**
 * How the handlers of one transaction ended. `blamed`: the transaction cannot commit, and `index` is the message to
 * set aside; `undefined` where it cannot be told (set-based). `failure` is what was thrown, or a word.
 */
export type Work =
  | {
      readonly kind: "done";
      /** Results by position; shorter than the messages if time was over and the rest was not run. */
      readonly results: readonly unknown[];
      readonly statements: readonly SentStatement[];
    }
  | {
      readonly kind: "blamed";
      readonly index: number | undefined;
      readonly failure: unknown;
      /** Statements sent before: one of them may be what really failed. */
      readonly earlier: readonly SentStatement[];
    };

/** A returned statement on its way; its answer may still be out. */
export interface SentStatement {
  readonly index: number;
  readonly statement: BuiltStatement;
  readonly answer: Promise<QueryResult>;
  /** Whose error it is, where one statement is several messages'. */
  readonly blamed?: ((error: unknown) => number | undefined) | undefined;
}

/** What the payloads of these messages are to their consumer's schema. */
export interface Readable {
  readonly items: Item[];
  readonly messages: Message[];
  readonly unreadable: (readonly [Item, InboxError])[];
  /** Not to be handled now: their key waits for an unreadable one. */
  readonly held: Item[];
}

/** Reads the payloads with the consumer's schema, before any handler runs. */
export async function readPayloads(context: LaneContext, items: readonly Item[]): Promise<Readable> {
  const schema = context.payloadSchema;
  if (schema === undefined)
    return { items: [...items], messages: items.map((item) => item.message), unreadable: [], held: [] };
  const readable: Readable = { items: [], messages: [], unreadable: [], held: [] };
  const parks = context.deferral !== undefined && context.settings.order === "park-key";
  const stuck = new Set<string>();
  for (const item of items) {
    const { key } = item.message;
    if (key !== undefined && stuck.has(key)) {
      readable.held.push(item);
      continue;
    }
    const pending = validateData(schema, item.message);
    const validation = "then" in pending ? await pending : pending;
    if (validation.ok) {
      readable.items.push(item);
      readable.messages.push(withData(item.message, validation.data));
    } else {
      readable.unreadable.push([item, validation.error]);
      if (parks && key !== undefined) stuck.add(key);
    }
  }
  return readable;
}

/**
 * Runs the handlers one after another: two that read, compute and write in one transaction at the same time would lose
 * an update, and no isolation level sees it. Returned statements are sent at once and in order, without waiting.
 */
export async function runHandlers(
  context: LaneContext,
  tx: LaneTransaction,
  { items, messages }: Readable,
  interrupt: Interrupt,
): Promise<Work> {
  const { handler } = items[0] as Item;
  const effects = collectEffects(context.settings.outbox);
  if (typeof handler !== "function") return runBatch(handler, tx, messages, interrupt, effects);
  const started = performance.now();
  const results: unknown[] = [];
  const statements: SentStatement[] = [];
  for (let index = 0; index < items.length; index++) {
    // A lane does not hold a transaction for longer than it said, even if handlers turn slow from one to the next.
    if (index > 0 && index % 8 === 0 && performance.now() - started > context.settings.maxTransactionMs)
      break;
    const sealed = new SealedTx(tx);
    const outbox = effects.open(index, (items[index] as Item).digest);
    const answer = await runOne(
      (items[index] as Item).handler as MessageHandler,
      messages[index] as Message,
      { sealed, outbox },
      interrupt,
    );
    if (answer.failure !== undefined)
      return { kind: "blamed", index, failure: answer.failure, earlier: statements };
    const returned = answer.statements;
    context.usage.settled(sealed.used || outbox.used || returned !== undefined);
    if (returned === undefined) {
      if (sealed.used && !(await tx.healthy(sealed.failed !== undefined))) {
        return { kind: "blamed", index, failure: swallowed(sealed), earlier: statements };
      }
      results.push(answer.value);
      continue;
    }
    for (const statement of returned) statements.push(send(tx, index, statement));
    results.push(undefined);
  }
  // Nothing is waited for, not even a turn, but where effects are sealed: COMMIT leaves in one write with the statements.
  if (effects.any()) {
    const sending = sendEffects(tx, effects);
    statements.push(...("then" in sending ? await sending : sending));
  }
  return { kind: "done", results, statements };
}

async function runBatch(
  handler: BatchHandler,
  tx: LaneTransaction,
  messages: readonly Message[],
  interrupt: Interrupt,
  effects: CollectedEffects,
): Promise<Work> {
  const sealed = new SealedTx(tx);
  const outbox = effects.open(0, undefined);
  const answer = await runOne(
    (list: unknown, context) => handler.handleBatch(list as Message[], context),
    messages,
    { sealed, outbox },
    interrupt,
  );
  const index = messages.length === 1 ? 0 : undefined;
  if (answer.failure !== undefined) return { kind: "blamed", index, failure: answer.failure, earlier: [] };
  if (sealed.used && !(await tx.healthy(sealed.failed !== undefined))) {
    return { kind: "blamed", index, failure: swallowed(sealed), earlier: [] };
  }
  const statements = (answer.statements ?? []).map((statement) => send(tx, 0, statement));
  if (effects.any()) {
    for (const sent of await sendEffects(tx, effects)) statements.push({ ...sent, blamed: () => index });
  }
  return { kind: "done", results: messages.map(() => undefined), statements };
}

/** Sends a returned statement without waiting; whoever looks for what failed reads its answer. */
function send(tx: LaneTransaction, index: number, statement: BuiltStatement): SentStatement {
  const answer = tx.query(statement);
  answer.catch(ignore);
  return { index, statement, answer };
}

/** All effects of the transaction, not waited for: another payload under a known id fails the commit. */
function sendEffects(
  tx: LaneTransaction,
  effects: CollectedEffects,
): readonly SentStatement[] | Promise<readonly SentStatement[]> {
  const { bundles, single } = effects.toStore(tx.bundleEffects !== undefined);
  const sent = bundles.map((bundle): SentStatement => {
    const answer = tx.bundleEffects!(bundle);
    answer.catch(ignore);
    return { index: 0, statement: statement("outbox"), answer, blamed: () => undefined };
  });
  if (single.length === 0) return sent;
  return sendSingle(tx, effects, single).then((one) => [...sent, one]);
}

/** Effects that are stored one by one, in one statement. */
async function sendSingle(
  tx: LaneTransaction,
  effects: CollectedEffects,
  all: readonly NewEffect[],
): Promise<SentStatement> {
  const { conflict } = await tx.sendEffects(all);
  let blamed: number | undefined;
  const answer = conflict.then((digest): QueryResult => {
    if (digest === undefined) return { rows: [], rowCount: null, command: "SELECT" };
    blamed = effects.indexOf(digest);
    const id = showValue(all.find((effect) => effect.digest === digest)?.id);
    throw new InboxError("effect-conflict", `The effect ${id} was asked for before with another payload.`);
  });
  answer.catch(ignore);
  return { index: 0, statement: statement("outbox"), answer, blamed: () => blamed };
}

interface Answer {
  readonly value?: unknown;
  /** The statements in the value, if it is such. */
  readonly statements?: readonly BuiltStatement[] | undefined;
  /** What was thrown, or a word that says the work shall not commit. */
  readonly failure?: unknown;
}

/** Runs one handler to its end and seals its tx. */
async function runOne<Subject>(
  handler: (subject: Subject, context: HandlerContext) => unknown,
  subject: Subject,
  { sealed, outbox }: { readonly sealed: SealedTx; readonly outbox: SealedOutbox },
  interrupt: Interrupt,
): Promise<Answer> {
  let value: unknown;
  try {
    value = handler(subject, { tx: sealed, outbox, signal: interrupt.signal });
    if (isThenable(value)) value = await interrupt.race(value);
  } catch (thrown) {
    sealed.seal();
    outbox.seal();
    return { failure: thrown ?? new Error("The handler threw nothing at all.") };
  }
  const running = sealed.seal();
  outbox.seal();
  if (isRetryIn(value) || isQuarantine(value)) return { failure: value };
  if (running > 0) {
    const text = `The handler settled while ${running} of its statements were still running. Await every query.`;
    return { failure: new InboxError("floating-query", text) };
  }
  try {
    const statements = statementsOf(value);
    if (statements?.some(({ text }) => controlsTransaction(text)) === true) {
      return { failure: new InboxError("invalid-handler", endsTransaction) };
    }
    return { value, statements };
  } catch (error) {
    return { failure: error };
  }
}

const swallowed = (sealed: SealedTx): InboxError =>
  new InboxError(
    "swallowed-error",
    "The handler caught the error of a statement, but the transaction was aborted by it. Use a savepoint, or let it throw.",
    { cause: sealed.failed },
  );

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";

const ignore = (): void => undefined;
