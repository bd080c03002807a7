import { randomUUID } from "node:crypto";
import { InboxError } from "../errors.ts";
import { isRejected, type Received } from "../message/message.ts";
import { showValue } from "../message/show-value.ts";
import { declareWindow } from "../store/declare-window.ts";
import { tellWarning } from "../telemetry/tell-warning.ts";
import type { Delivery, Intake, Kept, Settlement, Source } from "../sources/source.ts";
import { createAcceptor } from "./accept.ts";
import { checkKept } from "./check-kept.ts";
import type { Enter } from "./create-inbox.ts";
import { createEnding } from "./ending.ts";
import type { Handler } from "./handler.ts";
import { settle, type Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { emptyCounts, type OutcomeCounts } from "./outcome-counts.ts";
import type { Processed } from "./outcome.ts";
import { createProgress } from "./progress.ts";
import { quarantineReceived } from "./quarantine-received.ts";
import { createSettlements } from "./settlements.ts";
import { createWorker, type WorkerOptions } from "./worker.ts";
import { wholeNumber } from "../whole-number.ts";

/** How a source is run. */
export interface RunOptions extends WorkerOptions {
  /**
   * `inline`: a message is handled before it is acknowledged. `store-first`: its identity and body are stored, it is
   * acknowledged, and handled after that, by this process and every other that runs or works for the consumer.
   * Default `inline`.
   */
  readonly mode?: "inline" | "store-first" | undefined;
  /** Most deliveries in hand, handled or waiting for a lane. Default: two full batches a lane. */
  readonly maxInHand?: number | undefined;
  /** Most payload bytes in hand. Default 64 MiB. One larger message is taken alone. */
  readonly maxInHandBytes?: number | undefined;
  /** How often deliveries in hand are extended where the source can, in milliseconds. Default 10,000. */
  readonly extendEveryMs?: number | undefined;
  /** With messages waiting and none settled for so long, `health` says `stalled`; in milliseconds. Default 60,000. */
  readonly stalledAfterMs?: number | undefined;
  /**
   * How often it is noted how far the source has come, in milliseconds. The age of identities is counted while sources
   * make progress, and four times as long without any is none. Default 15,000.
   */
  readonly progressEveryMs?: number | undefined;
  /**
   * How long brokers keep messages, in place of what the source tells by itself, and where it cannot: what `askKafka`,
   * `askJetStream` or `askRabbitmq` of `transactional-inbox/retention` answer. Asked at the start where identities have a
   * window.
   */
  readonly kept?: (() => Promise<Kept | readonly Kept[]>) | undefined;
  /**
   * What to do where a broker keeps messages longer than identities are kept: warn, or refuse to start
   * (`window-too-short`). Default `warn`.
   */
  readonly windowCheck?: "warn" | "strict" | undefined;
}

/** What a run has done so far. */
export interface RunStats {
  readonly deliveries: number;
  /** Deliveries that have their outcome. */
  readonly settled: number;
  readonly inHand: number;
  /** What became of deliveries. */
  readonly outcomes: OutcomeCounts;
  /** Messages taken from pending: retries, those behind a failed one, and what was stored first. */
  readonly pending: PendingStats;
  /** Milliseconds since a message had its outcome, or since the start: the measure of health. */
  readonly idleMs: number;
  readonly durationMs: number;
}

/** What a run has done with messages that were stored. */
export interface PendingStats {
  /** Deliveries that went to pending: they are `stored` in `outcomes`, beside those whose body was kept before. */
  readonly stored: number;
  readonly inHand: number;
  /** What became of them, each time one was in hand. */
  readonly outcomes: OutcomeCounts;
}

/** Whether a run makes progress. "Connected" is no sign of health: a consumer may be connected and receive nothing for days. */
export interface RunHealth {
  /**
   * `ok`: something was settled lately, or there is nothing to do. `stalled`: messages wait, in hand or at the broker,
   * and nothing was settled for `stalledAfterMs`. `store-away`: the database does not answer. `ended`: it is over.
   */
  readonly status: "ok" | "stalled" | "store-away" | "ended";
  /** Milliseconds since a message had its outcome, or since the start. */
  readonly idleMs: number;
  /** Messages in hand, of the source and from pending. */
  readonly inHand: number;
  /** Messages waiting at the broker; `undefined` where the source cannot tell. */
  readonly lag: number | undefined;
}

/** A source being worked through. */
export interface Run extends AsyncDisposable {
  /**
   * Resolves when the source has ended, all is settled and nothing of the consumer is pending but what waits for a
   * decision; or after `stop`. Rejects if the source or the start failed, and if the consumer is retired: await it, or
   * the process may end as if all were well. What nobody awaits is told as a warning.
   */
  readonly finished: Promise<RunStats>;
  /** Stops intake, finishes what is being handled, releases the rest, closes the source. Twice is harmless. */
  stop(): Promise<RunStats>;
  stats(): RunStats;
  /** For a health check: asks the source for its lag. Never rejects. */
  health(): Promise<RunHealth>;
}

// A text may hold what changes with each message.
const maxWarnings = 1_000;

interface RunParts {
  readonly context: LaneContext;
  readonly enter: Enter;
  /** Told how to wake this run's worker; returns how to forget it. */
  readonly onWorker: (wake: () => void) => () => void;
  /** Tells every worker, here and elsewhere. */
  readonly onStored: () => void;
  readonly source: Source;
  /** `undefined`: messages are only stored. */
  readonly handler: Handler | undefined;
  readonly options: RunOptions;
}

/** Takes deliveries into lanes, keeps what is in hand bounded, and settles each delivery exactly once. */
export function runSource(parts: RunParts): Run {
  const { context, enter, source, handler, options } = parts;
  const { settings, store, name } = context;
  const maxInHand = options.maxInHand ?? settings.lanes * settings.maxBatch * 2;
  const maxInHandBytes = options.maxInHandBytes ?? 64 * 1024 * 1024;
  const extendEveryMs = options.extendEveryMs ?? 10_000;
  checkMode(options.mode);
  checkWindowCheck(options.windowCheck);
  const storeFirst = handler === undefined || options.mode === "store-first";
  const pendingCounts = emptyCounts();
  const worker = createWorker({
    ...{ context, handler: handler ?? neverCalled },
    options: { ...options, listen: options.listen ?? storeFirst },
    onPendingSettled({ outcome }) {
      pendingCounts[outcome]++;
      lastSettledAt = performance.now();
    },
    onRetired: () => sourceEnded(),
  });
  const { stopping } = worker;
  const acceptor = storeFirst ? createAcceptor(worker.context, stopping, parts.onStored) : undefined;
  const submit = acceptor?.submit ?? worker.submit;
  const settlements = createSettlements(source);
  const counts = emptyCounts();
  // Each with its number, in the order they came.
  const inHand = new Map<Delivery, number>();
  let acknowledged = 0;
  const progress = createProgress({
    ...{ source, store: store.progress, consumer: name.consumer, workerId: randomUUID() },
    everyMs: wholeNumber("progressEveryMs", options.progressEveryMs, 15_000, 10, 3_600_000),
    counts: () => ({ taken: deliveries, acknowledged, oldestInHand: inHand.values().next().value }),
  });
  const released = new WeakSet<Processed>();
  const startedAt = performance.now();
  let inHandBytes = 0;
  let over = false;
  let deliveries = 0;
  let storedNow = 0;
  let lastSettledAt = startedAt;
  let unreadable: Promise<unknown> = Promise.resolve();
  let waitingForRoom: (() => void)[] = [];
  let handsFree: () => void = () => undefined;
  let sourceEnded: (error?: Error) => void = () => undefined;
  const ended = new Promise<Error | undefined>((resolve) => (sourceEnded = resolve));

  const hasRoom = (): boolean =>
    inHand.size < maxInHand && (inHandBytes < maxInHandBytes || inHand.size === 0);

  function take(delivery: Delivery): void {
    deliveries++;
    inHand.set(delivery, deliveries);
    inHandBytes += bytesOf(delivery.received);
    const { received } = delivery;
    const done = (processed: Processed): void => finish(delivery, processed);
    // One after another: a flood of unreadable messages must not take every connection.
    if (isRejected(received))
      unreadable = unreadable.then(() => quarantineReceived(worker.context, received)).then(done);
    else {
      const { redelivered, position, brokerTime } = delivery;
      enter(received, handler ?? neverCalled, redelivered, submit, done, position, brokerTime);
    }
  }

  function finish(delivery: Delivery, processed: Processed): void {
    inHand.delete(delivery);
    inHandBytes -= bytesOf(delivery.received);
    lastSettledAt = performance.now();
    if (!released.has(processed)) counts[processed.outcome]++;
    if (processed.waitsFor !== undefined) storedNow++;
    const settlement: Settlement = released.has(processed) ? { kind: "release" } : settlementOf(processed);
    if (settlement.kind === "ack") acknowledged++;
    else progress.retried();
    settlements.add(delivery, settlement);
    if (waitingForRoom.length > 0 && hasRoom()) {
      for (const resolve of waitingForRoom) resolve();
      waitingForRoom = [];
    }
    if (inHand.size === 0) handsFree();
  }

  /** Gives back what no lane has begun. */
  function release(items: readonly Item[]): void {
    for (const item of items) {
      const error = new InboxError("interrupted", "The process is stopping; the message was not begun.");
      const processed: Processed = { outcome: "failed", settle: "retry", retryAfterMs: 0, error };
      released.add(processed);
      settle(item, processed);
    }
  }

  let window: number | undefined;
  const check = (kept: readonly Kept[]): void =>
    checkKept(kept, { windowMs: window, strict: options.windowCheck === "strict", warn: intake.warn });

  /** Whether what brokers can send again is known for as long; before anything is received. */
  async function readWindow(): Promise<void> {
    const { windowMs } = settings;
    if (windowMs !== undefined) await declareWindow(store.cleanup, name.consumer, windowMs, intake.warn);
    window = await store.cleanup.shortestWindow(name.consumer);
    if (window !== undefined && options.kept !== undefined) check([await options.kept()].flat());
  }

  const warned = new Set<string>();
  const intake: Intake = {
    facts: {
      consumer: name.consumer,
      lanes: settings.lanes,
      maxInHand,
      maxInHandBytes,
      handlerTimeoutMs: settings.handlerTimeoutMs,
      extendEveryMs,
    },
    warn(message) {
      if (warned.has(message) || warned.size >= maxWarnings) return;
      warned.add(message);
      tellWarning(`${source.name}: ${message}`);
    },
    async deliver(list) {
      for (const delivery of list) take(delivery);
      while (!hasRoom() && !stopping.aborted) {
        await new Promise<void>((resolve) => waitingForRoom.push(resolve));
      }
    },
    get kept() {
      return window === undefined || options.kept !== undefined ? undefined : check;
    },
    end: (error) => sourceEnded(error),
    async takeCursor(log, ask) {
      const taken = await store.logs.takeCursor(name.consumer, log, ask);
      if (taken.kind !== "taken") return taken;
      const { kind, epoch, incarnation, applied } = taken;
      return { kind, position: { log, epoch }, incarnation, applied };
    },
    markEnd: (position, part, end) => store.logs.markEnd(name.consumer, position, part, end),
    takeLog: async (log) => ({ log, epoch: (await store.logs.take(name.consumer, log)).epoch }),
  };

  /** Finishes what is in hand, and at a source's good end also what is pending; a stop cuts that short. */
  async function finishInHand(endedWell: boolean): Promise<void> {
    if (inHand.size > 0 && !stopping.aborted) {
      await new Promise<void>((resolve) => {
        handsFree = resolve;
        stopping.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    if (endedWell && handler !== undefined && !stopping.aborted) await worker.drained();
    worker.stop();
    await Promise.all([worker.finish(release), acceptor?.finish(release), unreadable]);
  }

  async function main(): Promise<RunStats> {
    let extending: NodeJS.Timeout | undefined;
    const forget = parts.onWorker(worker.wake);
    try {
      await (handler === undefined ? store.ping() : worker.start());
      await readWindow();
      await source.start(intake);
      progress.start();
      if (source.extend) {
        extending = setInterval(
          () => void source.extend?.([...inHand.keys()]).catch(() => undefined),
          extendEveryMs,
        );
      }
      const error = await ended;
      await source.stop();
      const atItsEnd = error === undefined && !stopping.aborted;
      await finishInHand(error === undefined);
      await settlements.flushed();
      if (error !== undefined) {
        throw new InboxError("source-failed", `${source.name} ended: ${error.message}`, { cause: error });
      }
      await progress.stop(atItsEnd);
      const retired = worker.retired();
      if (retired !== undefined) throw retired;
      return stats();
    } finally {
      over = true;
      await progress.stop(false);
      forget();
      clearInterval(extending);
      await source.close().catch(() => undefined);
      await worker.close();
    }
  }

  const stats = (): RunStats => ({
    deliveries,
    settled: deliveries - inHand.size,
    inHand: inHand.size,
    outcomes: { ...counts },
    pending: { stored: storedNow, inHand: worker.pendingInHand(), outcomes: { ...pendingCounts } },
    idleMs: performance.now() - lastSettledAt,
    durationMs: performance.now() - startedAt,
  });

  async function health(): Promise<RunHealth> {
    const lag = over ? undefined : await askLag();
    const idleMs = performance.now() - lastSettledAt;
    const open = inHand.size + worker.pendingInHand();
    const waits = open > 0 || (lag !== undefined && lag > 0);
    const stalled = waits && idleMs >= (options.stalledAfterMs ?? 60_000);
    const status = over ? "ended" : worker.storeAway() ? "store-away" : stalled ? "stalled" : "ok";
    return { status, idleMs, inHand: open, lag };
  }

  async function askLag(): Promise<number | undefined> {
    try {
      return await source.lag?.();
    } catch {
      return undefined;
    }
  }

  const ending = createEnding(`The run of ${source.name} for consumer ${showValue(name.consumer)}`, main());
  const stop = (): Promise<RunStats> => {
    worker.stop();
    for (const resolve of waitingForRoom.splice(0)) resolve();
    sourceEnded();
    return ending.ask();
  };
  return {
    get finished() {
      return ending.ask();
    },
    stop,
    stats,
    health,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

function checkMode(mode: string | undefined): void {
  if (mode === undefined || mode === "inline" || mode === "store-first") return;
  throw new InboxError("invalid-option", `mode must be inline or store-first; got ${JSON.stringify(mode)}.`);
}

function checkWindowCheck(word: string | undefined): void {
  if (word === undefined || word === "warn" || word === "strict") return;
  throw new InboxError("invalid-option", `windowCheck must be warn or strict; got ${JSON.stringify(word)}.`);
}

function settlementOf({ settle, outcome, retryAfterMs }: Processed): Settlement {
  if (settle === "retry") return { kind: "retry", afterMs: retryAfterMs ?? 0 };
  const quarantined = outcome === "rejected" || outcome === "conflict" || outcome === "late";
  return quarantined ? { kind: "ack", quarantined } : { kind: "ack" };
}

const bytesOf = (received: Received): number => received.bytes?.byteLength ?? 0;

const neverCalled: Handler = () => undefined;
