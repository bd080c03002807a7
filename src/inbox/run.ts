import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { InboxError } from "../errors.ts";
import { isRejected, type Received } from "../message/message.ts";
import { telemetry } from "../telemetry/channels.ts";
import type { Delivery, Intake, Settlement, Source } from "../sources/source.ts";
import type { Enter } from "./create-inbox.ts";
import { createCrashGuard } from "./crash-guard.ts";
import type { Handler } from "./handler.ts";
import { settle, type Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { createLanes } from "./lanes.ts";
import type { Outcome, Processed } from "./outcome.ts";
import { quarantineReceived } from "./quarantine-received.ts";
import { createSettlements } from "./settlements.ts";
import { createStoreWatch } from "./store-watch.ts";

export interface RunOptions {
  /** Most deliveries in hand, handled or waiting for a lane. Default: two full batches a lane. */
  readonly maxInHand?: number | undefined;
  /** Most payload bytes in hand. Default 64 MiB. One larger message is taken alone. */
  readonly maxInHandBytes?: number | undefined;
  /** How long `stop` waits for handlers before it interrupts them, in milliseconds. Default 10,000. */
  readonly stopTimeoutMs?: number | undefined;
  /** How long after its last sign of life a worker counts as dead, in milliseconds. Default 10,000. */
  readonly workerLeaseMs?: number | undefined;
  /** How often deliveries in hand are extended where the source can, in milliseconds. Default 10,000. */
  readonly extendEveryMs?: number | undefined;
  /** With messages waiting and none settled for so long, `health` says `stalled`; in milliseconds. Default 60,000. */
  readonly stalledAfterMs?: number | undefined;
}

export interface RunStats {
  readonly deliveries: number;
  /** Deliveries that have their outcome. */
  readonly settled: number;
  readonly inHand: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Milliseconds since the last delivery was settled, or since the start: the measure of health. */
  readonly idleMs: number;
  readonly durationMs: number;
}

/** Whether a run makes progress. "Connected" is no sign of health: a consumer may be connected and receive nothing for days. */
export interface RunHealth {
  /**
   * `ok`: something was settled lately, or there is nothing to do. `stalled`: messages wait, in hand or at the broker,
   * and nothing was settled for `stalledAfterMs`. `store-away`: the database does not answer. `ended`: it is over.
   */
  readonly status: "ok" | "stalled" | "store-away" | "ended";
  /** Milliseconds since a delivery was settled, or since the start. */
  readonly idleMs: number;
  readonly inHand: number;
  /** Messages waiting at the broker; `undefined` where the source cannot tell. */
  readonly lag: number | undefined;
}

/** A source being worked through. */
export interface Run extends AsyncDisposable {
  /** Resolves when the source has ended and all is settled, or after `stop`; rejects if the source or the start failed. */
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
  readonly source: Source;
  readonly handler: Handler;
  readonly options: RunOptions;
}

/** Takes deliveries into lanes, keeps what is in hand bounded, and settles each delivery exactly once. */
export function runSource({ context, enter, source, handler, options }: RunParts): Run {
  const { settings, store, name } = context;
  const maxInHand = options.maxInHand ?? settings.lanes * settings.maxBatch * 2;
  const maxInHandBytes = options.maxInHandBytes ?? 64 * 1024 * 1024;
  const extendEveryMs = options.extendEveryMs ?? 10_000;
  const stopping = new AbortController();
  const interrupting = new AbortController();
  // Every lane listens while it works; more than ten are no leak.
  setMaxListeners(0, interrupting.signal);
  const watch = createStoreWatch(store, name.consumer, settings.random, stopping.signal);
  const running: LaneContext = {
    ...context,
    signal: interrupting.signal,
    waitForStore: (error) => watch.wait(error),
  };
  const guard = createCrashGuard(running, options.workerLeaseMs ?? 10_000);
  const lanes = createLanes(settings.lanes, context.pace, (items) => guard.work(items));
  const settlements = createSettlements(source);
  const counts = emptyCounts();
  const inHand = new Set<Delivery>();
  const released = new WeakSet<Processed>();
  const startedAt = performance.now();
  let inHandBytes = 0;
  let over = false;
  let deliveries = 0;
  let lastSettledAt = startedAt;
  let unreadable: Promise<unknown> = Promise.resolve();
  let waitingForRoom: (() => void)[] = [];
  let sourceEnded: (error?: Error) => void = () => undefined;
  const ended = new Promise<Error | undefined>((resolve) => (sourceEnded = resolve));

  const hasRoom = (): boolean =>
    inHand.size < maxInHand && (inHandBytes < maxInHandBytes || inHand.size === 0);

  function take(delivery: Delivery): void {
    deliveries++;
    inHand.add(delivery);
    inHandBytes += bytesOf(delivery.received);
    const { received } = delivery;
    const done = (processed: Processed): void => finish(delivery, processed);
    // One after another: a flood of unreadable messages must not take every connection.
    if (isRejected(received))
      unreadable = unreadable.then(() => quarantineReceived(running, received)).then(done);
    else enter(received, handler, delivery.redelivered, (item) => lanes.submit(item), done);
  }

  function finish(delivery: Delivery, processed: Processed): void {
    inHand.delete(delivery);
    inHandBytes -= bytesOf(delivery.received);
    lastSettledAt = performance.now();
    if (!released.has(processed)) counts[processed.outcome]++;
    settlements.add(delivery, released.has(processed) ? { kind: "release" } : settlementOf(processed));
    if (waitingForRoom.length > 0 && hasRoom()) {
      for (const resolve of waitingForRoom) resolve();
      waitingForRoom = [];
    }
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
      telemetry.warning.publish({ message: `${source.name}: ${message}` });
    },
    async deliver(list) {
      for (const delivery of list) take(delivery);
      while (!hasRoom() && !stopping.signal.aborted) {
        await new Promise<void>((resolve) => waitingForRoom.push(resolve));
      }
    },
    end: (error) => sourceEnded(error),
  };

  async function finishInHand(): Promise<void> {
    const done = Promise.all([lanes.idle(), unreadable]);
    if (!stopping.signal.aborted) return void (await done);
    release(lanes.takeUnstarted());
    const deadline = sleep(options.stopTimeoutMs ?? 10_000, "late", { ref: false });
    if ((await Promise.race([done, deadline])) === "late") interrupting.abort();
    await done;
  }

  async function main(): Promise<RunStats> {
    let extending: NodeJS.Timeout | undefined;
    try {
      await guard.start();
      await source.start(intake);
      if (source.extend) {
        extending = setInterval(
          () => void source.extend?.([...inHand]).catch(() => undefined),
          extendEveryMs,
        );
      }
      const error = await ended;
      await source.stop();
      await finishInHand();
      await settlements.flushed();
      if (error !== undefined) {
        throw new InboxError("source-failed", `${source.name} ended: ${error.message}`, { cause: error });
      }
      return stats();
    } finally {
      over = true;
      clearInterval(extending);
      await source.close().catch(() => undefined);
      await guard.stop();
    }
  }

  const stats = (): RunStats => ({
    deliveries,
    settled: deliveries - inHand.size,
    inHand: inHand.size,
    outcomes: { ...counts },
    idleMs: performance.now() - lastSettledAt,
    durationMs: performance.now() - startedAt,
  });

  async function health(): Promise<RunHealth> {
    const lag = over ? undefined : await askLag();
    const idleMs = performance.now() - lastSettledAt;
    const waits = inHand.size > 0 || (lag !== undefined && lag > 0);
    const stalled = waits && idleMs >= (options.stalledAfterMs ?? 60_000);
    const status = over ? "ended" : watch.away() ? "store-away" : stalled ? "stalled" : "ok";
    return { status, idleMs, inHand: inHand.size, lag };
  }

  async function askLag(): Promise<number | undefined> {
    try {
      return await source.lag?.();
    } catch {
      return undefined;
    }
  }

  const finished = main();
  finished.catch(() => undefined);
  const stop = (): Promise<RunStats> => {
    stopping.abort();
    for (const resolve of waitingForRoom.splice(0)) resolve();
    sourceEnded();
    return finished;
  };
  return {
    finished,
    stop,
    stats,
    health,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

function settlementOf({ settle, outcome, retryAfterMs }: Processed): Settlement {
  if (settle === "retry") return { kind: "retry", afterMs: retryAfterMs ?? 0 };
  const quarantined = outcome === "rejected" || outcome === "conflict" || outcome === "late";
  return quarantined ? { kind: "ack", quarantined } : { kind: "ack" };
}

const bytesOf = (received: Received): number => received.bytes?.byteLength ?? 0;

const emptyCounts = (): Record<Outcome, number> => ({
  ...{
    applied: 0,
    duplicate: 0,
    superseded: 0,
    stored: 0,
    conflict: 0,
    rejected: 0,
    late: 0,
    busy: 0,
    failed: 0,
  },
});
