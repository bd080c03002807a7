import { randomUUID } from "node:crypto";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { receiveMessage } from "../message/create-message.ts";
import { fingerprintMode } from "../message/fingerprint-mode.ts";
import { createIdentityDigest } from "../message/identity.ts";
import { isRejected, type Message, type MessageInput, type Received } from "../message/message.ts";
import { sentAt } from "../message/sent-at.ts";
import { InboxError } from "../errors.ts";
import type { QuarantineEntry } from "../store/quarantine-entry.ts";
import type { LogPosition } from "../store/log.ts";
import type { ConsumerName } from "../store/store.ts";
import type { Source } from "../sources/source.ts";
import { createAcceptor } from "./accept.ts";
import { announce } from "./announce.ts";
import { createAnswers, type Answers } from "./answers.ts";
import { dryRun, type DryRun, type DryRunOptions } from "./dry-run.ts";
import type { BatchHandler, Handler, MessageHandler } from "./handler.ts";
import { createHandlerUsage } from "./handler-usage.ts";
import { createHinter } from "./hinter.ts";
import { createInFlight } from "./in-flight.ts";
import type { Item } from "./item.ts";
import { workLane } from "./lane-attempt.ts";
import type { LaneContext } from "./lane-context.ts";
import { createLanes } from "./lanes.ts";
import { settingsFrom, type InboxOptions } from "./options.ts";
import type { Processed } from "./outcome.ts";
import { createPace } from "./pace.ts";
import { acceptInTransaction, processInTransaction, type JoinedResult } from "./process-in-transaction.ts";
import { quarantineReceived } from "./quarantine-received.ts";
import { runSource, type Run, type RunOptions } from "./run.ts";
import { workPending, type Work, type WorkOptions } from "./work.ts";

/** Takes a message in: `begin` is called when it shall be worked on, `done` once, with its outcome. */
export type Enter = (
  message: Message,
  handler: Handler,
  redelivered: boolean,
  begin: (item: Item) => void,
  done: (processed: Processed) => void,
  position?: LogPosition,
  brokerTime?: number,
) => void;

/** What the consumer's schema makes of a payload; `unknown` without one. */
type DataOf<Schema> = Schema extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<Schema> : unknown;

/** A message as it may be given: as parts, or as `createMessage` or a source made it. */
export type Given = MessageInput | Received;

export interface Inbox<Data = unknown> {
  readonly consumer: string;
  /**
   * Claims the message, runs the handler and commits, in one transaction of its own. Never rejects for what a message
   * or a handler does: read `outcome`, and acknowledge only if `settle` is `"ack"`.
   */
  process<Result = undefined>(
    message: Given,
    handler: MessageHandler<Data, Result>,
  ): Promise<Processed<Result>>;
  /**
   * Claims the message inside a transaction that is yours, and runs `work` only if it is new. You commit; acknowledge
   * after that. Rejects with `not-a-transaction` for a pool or a client without an open transaction, with `busy` if
   * another transaction holds the claim, and with whatever `work` throws: then roll back.
   */
  processInTransaction<Result>(
    tx: unknown,
    message: Given,
    work: (message: Message<Data>) => Promise<Result> | Result,
  ): Promise<JoinedResult<Result>>;
  /** Many messages, in lanes by key. The outcomes come in the order of the messages. Never rejects for a message. */
  processBatch<Result = undefined>(
    messages: readonly Given[],
    handler: MessageHandler<Data, Result> | BatchHandler<Data>,
  ): Promise<Processed<Result>[]>;
  /**
   * Takes messages from a source until it ends or the run is stopped, and handles what of the consumer is pending. Throws
   * `invalid-option` for options that break their rules.
   */
  run(source: Source, handler: MessageHandler<Data> | BatchHandler<Data>, options?: RunOptions): Run;
  /**
   * Stores messages for `work`: identity and body are committed, then it answers `stored`. A redelivery is `stored` until
   * it is handled, `duplicate` after that. Messages of one key are handled in the order they are given here. Never
   * rejects for a message: acknowledge only if `settle` is `"ack"`.
   */
  accept(message: Given): Promise<Processed<never>>;
  accept(messages: readonly Given[]): Promise<Processed<never>[]>;
  /**
   * `accept` inside a transaction that is yours: what it stores is there once you commit, and workers see it then.
   * Rejects as `processInTransaction` does; then roll back.
   */
  acceptInTransaction(tx: unknown, message: Given): Promise<JoinedResult<never>>;
  acceptInTransaction(tx: unknown, messages: readonly Given[]): Promise<JoinedResult<never>[]>;
  /** `accept` for a source: what it brings is stored and acknowledged, and handled elsewhere by `work` or `run`. */
  acceptFrom(source: Source, options?: Omit<RunOptions, "mode">): Run;
  /** Handles what is pending, in lanes as `run` does, until it is stopped. Any number of processes may work at once. */
  work(handler: MessageHandler<Data> | BatchHandler<Data>, options?: WorkOptions): Work;
  /**
   * Runs a handler for a message, or for an entry of the quarantine, in a transaction that is always rolled back, and
   * tells how it would have ended and what it sent. Rejects with `decision-needs` for an entry without identity, and if
   * the database is away.
   */
  dryRun(
    subject: Given | QuarantineEntry,
    handler: MessageHandler<Data> | BatchHandler<Data>,
    options?: DryRunOptions,
  ): Promise<DryRun>;
  /**
   * Tells that everything a source had until now is settled, where `process` is called by a loop of your own: the age of
   * identities is counted while this is told, at least once a minute. A run tells it of its source by itself. Rejects if
   * the database is away.
   */
  caughtUp(source: string): Promise<void>;
  /** What was answered to messages that came as requests. For receivers; `httpReceiver` uses it. */
  readonly answers: Answers;
}

/**
 * An inbox for one consumer. Throws `invalid-option` for options that break their rules. Opens nothing by itself.
 */
export function createInbox<Schema extends StandardSchemaV1 | undefined = undefined>(
  options: InboxOptions<Schema>,
): Inbox<DataOf<Schema>> {
  const settings = settingsFrom(options);
  const mode = fingerprintMode(options.fingerprint ?? { by: "bytes" });
  const digestOf = createIdentityDigest(options.consumer);
  const name: ConsumerName = { consumer: options.consumer, handlerVersion: options.handlerVersion ?? "1" };
  const inFlight = createInFlight();
  const pace = createPace(settings);
  const context: LaneContext = {
    ...{ store: options.store, name, settings, payloadSchema: options.payloadSchema, pace },
    usage: createHandlerUsage(options.consumer),
    ...{ signal: undefined, waitForStore: undefined, aside: undefined, deferral: undefined },
  };
  const lanes = createLanes(settings.lanes, pace, (items) => workLane(context, items));

  const wakers = new Set<() => void>();
  const wakeAll = (): void => {
    for (const wake of wakers) wake();
  };
  const onWorker = (wake: () => void): (() => void) => {
    wakers.add(wake);
    return () => void wakers.delete(wake);
  };
  const hint = createHinter(() => options.store.pending.hint(options.consumer));
  const onStored = (): void => {
    wakeAll();
    hint();
  };
  const acceptor = createAcceptor(context, undefined, onStored);
  const loopId = randomUUID();

  const received = (given: Given): Received =>
    "rejected" in given || "bytes" in given ? given : receiveMessage(given);

  const itemOf = (
    message: Message,
    handler: Handler,
    redelivered: boolean,
    onSettled: Item["onSettled"],
    position?: LogPosition,
    brokerTime?: number,
  ): Item => ({
    message,
    handler,
    redelivered,
    position,
    ...{ pending: undefined, conflicts: 0, deferrals: 0, processed: undefined },
    digest: digestOf(message),
    tenant: message.tenant,
    producer: message.producer,
    id: message.id,
    fingerprint: message.fingerprint(mode),
    sentAt: sentAt(message.time, brokerTime, settings.idTimeOf?.(message.id)),
    onSettled,
  });

  /** Makes an item and begins it, unless this process is working on its identity: then it follows that one. */
  const enter: Enter = (message, handler, redelivered, begin, done, position, brokerTime) => {
    let leads = false;
    const item = itemOf(
      message,
      handler,
      redelivered,
      (processed) => {
        announce(name, message, processed);
        done(processed);
        if (leads) inFlight.leave(item, processed);
      },
      position,
      brokerTime,
    );
    const start = (): void => {
      leads = inFlight.enter(item, start);
      if (leads) begin(item);
    };
    start();
  };

  const one = (given: Given, handler: Handler, begin: (item: Item) => void): Promise<Processed> =>
    new Promise((resolve) => {
      const message = received(given);
      if (isRejected(message)) void quarantineReceived(context, message).then(resolve);
      else enter(message, handler, false, begin, resolve);
    });

  const runs = (source: Source, handler: Handler | undefined, runOptions: RunOptions): Run =>
    runSource({ context, enter, onWorker, onStored, source, handler, options: runOptions });

  const accept = (given: Given): Promise<Processed<never>> =>
    one(given, neverCalled, acceptor.submit) as Promise<Processed<never>>;

  return {
    consumer: options.consumer,
    answers: createAnswers(options.store, options.consumer, mode, digestOf),
    process: (given, handler) =>
      one(given, handler as Handler, (item) => void workLane(context, [item])) as Promise<Processed<never>>,
    processInTransaction: (tx, given, work) =>
      processInTransaction(context, mode, digestOf, tx, received(given), work as (message: Message) => never),
    processBatch: (messages, handler) =>
      Promise.all(
        messages.map((given) => one(given, handler as Handler, (item) => lanes.submit(item))),
      ) as Promise<Processed<never>[]>,
    async dryRun(subject, handler, dryRunOptions) {
      const message = received("messageId" in subject ? messageOf(subject) : subject);
      if (isRejected(message)) throw new InboxError("decision-needs", message.rejected.text);
      const trying = (own: Message, ownHandler: Handler): Item =>
        itemOf(own, ownHandler, false, () => undefined);
      return dryRun(context, message, handler as Handler, trying, dryRunOptions);
    },
    run: (source, handler, runOptions = {}) => runs(source, handler as Handler, runOptions),
    accept: ((given: Given | readonly Given[]) =>
      isList(given) ? Promise.all(given.map(accept)) : accept(given)) as Inbox["accept"],
    acceptInTransaction: (async (tx: unknown, given: Given | readonly Given[]) => {
      const list = (isList(given) ? given : [given]).map(received);
      const results = await acceptInTransaction(context, mode, digestOf, tx, list);
      return isList(given) ? results : results[0];
    }) as Inbox["acceptInTransaction"],
    acceptFrom: (source, runOptions = {}) => runs(source, undefined, runOptions),
    caughtUp: (source) =>
      options.store.progress.report(options.consumer, checkedSource(source), loopId, {
        ...{ behindMs: 0, everyMs: 15_000 },
      }),
    work: (handler, workOptions = {}) => workPending(context, handler as Handler, workOptions, onWorker),
  };
}

const isList = (given: Given | readonly Given[]): given is readonly Given[] => Array.isArray(given);

function checkedSource(source: string): string {
  if (typeof source === "string" && source !== "" && source.isWellFormed() && !source.includes("\0"))
    return source;
  throw new InboxError(
    "invalid-option",
    "source must be a text without NUL: the name that progress is told of.",
  );
}

const neverCalled: Handler = () => undefined;

/** An entry's message as it came. */
const messageOf = (entry: QuarantineEntry): MessageInput => ({
  tenant: entry.tenant,
  // What is missing is refused by the check of the input.
  producer: entry.producer ?? "",
  id: entry.messageId ?? "",
  payload: entry.payload,
  key: entry.key,
  type: entry.type,
  time: entry.time,
  headers: entry.headers,
});
