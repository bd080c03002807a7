import { showValue } from "../message/show-value.ts";
import { declareWindow } from "../store/declare-window.ts";
import { tellWarning } from "../telemetry/tell-warning.ts";
import { emptyCounts, type OutcomeCounts } from "./outcome-counts.ts";
import { createEnding } from "./ending.ts";
import type { Handler } from "./handler.ts";
import type { LaneContext } from "./lane-context.ts";
import { createWorker, type WorkerOptions } from "./worker.ts";

/** How pending messages are worked through without a source. */
export interface WorkOptions extends WorkerOptions {
  /** Ends by itself when nothing is pending but what waits for a decision. Default: it works until it is stopped. */
  readonly untilDrained?: boolean | undefined;
  /** With messages in hand and none settled for so long, `health` says `stalled`; in milliseconds. Default 60,000. */
  readonly stalledAfterMs?: number | undefined;
}

/** What has been done so far. */
export interface WorkStats {
  readonly inHand: number;
  /** What became of messages, each time one was in hand: `stored` ones failed and are to be tried again. */
  readonly outcomes: OutcomeCounts;
  /** Milliseconds since a message had its outcome, or since the start. */
  readonly idleMs: number;
  readonly durationMs: number;
}

/** Whether there is progress. */
export interface WorkHealth {
  /** As for a run, without the source. */
  readonly status: "ok" | "stalled" | "store-away" | "ended";
  readonly idleMs: number;
  readonly inHand: number;
  /** Whether hints of other processes arrive. Without them what they store is found within a second. */
  readonly listening: boolean;
}

/** Pending messages being worked through. */
export interface Work extends AsyncDisposable {
  /** Resolves after `stop`, or with `untilDrained` when it is through; rejects if the start failed, or the consumer is retired. */
  readonly finished: Promise<WorkStats>;
  /** Takes nothing more, finishes what is being handled, gives the rest back. Twice is harmless. */
  stop(): Promise<WorkStats>;
  stats(): WorkStats;
  health(): WorkHealth;
}

/** Handles what `accept` stored, and every retry, of one consumer. */
export function workPending(
  context: LaneContext,
  handler: Handler,
  options: WorkOptions,
  onWorker: (wake: () => void) => () => void,
): Work {
  const counts = emptyCounts();
  const startedAt = performance.now();
  let lastSettledAt = startedAt;
  let over = false;
  const worker = createWorker({
    ...{ context, handler },
    options: { ...options, listen: options.listen ?? true },
    onPendingSettled({ outcome }) {
      counts[outcome]++;
      lastSettledAt = performance.now();
    },
  });
  const { stopping } = worker;

  const stats = (): WorkStats => ({
    inHand: worker.pendingInHand(),
    outcomes: { ...counts },
    idleMs: performance.now() - lastSettledAt,
    durationMs: performance.now() - startedAt,
  });

  const untilStopped = (): Promise<void> =>
    new Promise((resolve) => {
      if (stopping.aborted) resolve();
      else stopping.addEventListener("abort", () => resolve(), { once: true });
    });

  async function main(): Promise<WorkStats> {
    const forget = onWorker(worker.wake);
    try {
      await worker.start();
      const { store, name, settings } = context;
      if (settings.windowMs !== undefined) {
        await declareWindow(store.cleanup, name.consumer, settings.windowMs, tellWarning);
      }
      await (options.untilDrained === true ? worker.drained() : untilStopped());
      worker.stop();
      await worker.finish(() => undefined);
      const retired = worker.retired();
      if (retired !== undefined) throw retired;
      return stats();
    } finally {
      over = true;
      forget();
      await worker.close();
    }
  }

  const ending = createEnding(`The work of consumer ${showValue(context.name.consumer)}`, main());
  const stop = (): Promise<WorkStats> => {
    worker.stop();
    return ending.ask();
  };
  return {
    get finished() {
      return ending.ask();
    },
    stop,
    stats,
    health() {
      const { inHand, idleMs } = stats();
      const stalled = inHand > 0 && idleMs >= (options.stalledAfterMs ?? 60_000);
      const status = over ? "ended" : worker.storeAway() ? "store-away" : stalled ? "stalled" : "ok";
      return { status, idleMs, inHand, listening: worker.listening() };
    },
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}
