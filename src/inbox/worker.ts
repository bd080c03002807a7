import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { InboxError } from "../errors.ts";
import type { Hints } from "../store/pending.ts";
import { wholeNumber } from "../whole-number.ts";
import { createCrashGuard } from "./crash-guard.ts";
import type { Handler } from "./handler.ts";
import type { Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { createLanes, type Lanes } from "./lanes.ts";
import type { Processed } from "./outcome.ts";
import { createPendingFeed } from "./pending-feed.ts";
import { createStash } from "./stash.ts";
import { createStoreWatch } from "./store-watch.ts";

/** How pending messages are worked through, by `run` and by `work`. */
export interface WorkerOptions {
  /** How long `stop` waits for handlers before it interrupts them, in milliseconds. Default 10,000. */
  readonly stopTimeoutMs?: number | undefined;
  /**
   * How long after its last sign of life a worker counts as dead, and how long others leave the pending messages alone
   * that it had in hand, in milliseconds. Default 10,000.
   */
  readonly workerLeaseMs?: number | undefined;
  /**
   * Whether a connection of its own, beside the pool, listens for what other processes store (NOTIFY), so that it is
   * handled at once. Without it, and behind poolers that do not let it through, a worker with nothing to do looks every
   * second. Default: true for `work` and `store-first`, false for a run that handles inline.
   */
  readonly listen?: boolean | undefined;
}

/** What `run` and `work` have in common: lanes, fed with pending messages, and their care for crashes and outages. */
export interface Worker {
  readonly context: LaneContext;
  /** Aborted when the worker begins to stop. */
  readonly stopping: AbortSignal;
  /** Rejects if the database is away or its schema does not fit. */
  start(): Promise<void>;
  /** Puts a message of a source into its lane. */
  submit(item: Item): void;
  /** Something may have become pending. */
  wake(): void;
  /** Pending messages in hand. */
  pendingInHand(): number;
  storeAway(): boolean;
  /** Whether hints of other processes arrive. */
  listening(): boolean;
  /** Resolves when nothing pending of the consumer will be handled without a decision, or the worker is stopping. */
  drained(): Promise<void>;
  /** Why it stops by itself: another consumer has taken over from this one. */
  retired(): InboxError | undefined;
  /** Takes no pending messages any more. Twice is harmless. */
  stop(): void;
  /** After `stop`: ends what is begun and gives back the rest; messages of a source through `giveBack`. */
  finish(giveBack: (items: readonly Item[]) => void): Promise<void>;
  /** The end. Never rejects. */
  close(): Promise<void>;
}

export interface WorkerParts {
  readonly context: LaneContext;
  readonly handler: Handler;
  readonly options: WorkerOptions;
  /** Told of each pending message's outcome. */
  readonly onPendingSettled: (processed: Processed) => void;
  /** Told when it has begun to stop because the consumer is retired. */
  readonly onRetired?: (() => void) | undefined;
}

export function createWorker({ context, handler, options, ...told }: WorkerParts): Worker {
  const { settings, store, name } = context;
  const leaseMs = wholeNumber("workerLeaseMs", options.workerLeaseMs, 10_000, 100, 86_400_000);
  const stopTimeoutMs = wholeNumber("stopTimeoutMs", options.stopTimeoutMs, 10_000, 0, 86_400_000);
  const stopping = new AbortController();
  const interrupting = new AbortController();
  // Every lane listens while it works; more than ten are no leak.
  setMaxListeners(0, stopping.signal, interrupting.signal);
  const watch = createStoreWatch(store, name.consumer, settings.random, stopping.signal);
  const stash = createStash((key, take) => lanes.again(key, take), stopping.signal);
  const running: LaneContext = {
    ...context,
    signal: interrupting.signal,
    waitForStore: (error) => watch.wait(error),
    deferral: { stopping: stopping.signal, stash, soon: (delayMs) => feed.soon(delayMs) },
  };
  let hints: Hints | undefined;
  let retired: InboxError | undefined;
  const guard = createCrashGuard(running, leaseMs, (error) => {
    retired = error;
    stop();
    told.onRetired?.();
  });
  const lanes: Lanes = createLanes(settings.lanes, context.pace, async (items) => {
    await guard.work(items);
    for (const item of items) feed.done(item);
  });
  const feed = createPendingFeed({
    ...{ context: running, handler, lanes, workerId: guard.workerId, leaseMs },
    onSettled: told.onPendingSettled,
  });

  function stop(): void {
    stopping.abort();
    feed.stop();
  }

  return {
    context: running,
    stopping: stopping.signal,
    async start() {
      await guard.start();
      await store.pending.openLanes(name.consumer);
      feed.start();
      if (options.listen === true) hints = store.pending.listen(name.consumer, () => feed.wake());
    },
    submit: (item) => lanes.submit(item),
    wake: () => feed.wake(),
    pendingInHand: () => feed.inHand(),
    storeAway: () => watch.away(),
    listening: () => hints?.heard() === true,
    drained: () => feed.drained(),
    retired: () => retired,
    stop,
    async finish(giveBack) {
      const done = lanes.idle();
      const unstarted = lanes.takeUnstarted();
      for (const item of unstarted) feed.done(item);
      const deadline = sleep(stopTimeoutMs, "late", { ref: false });
      if ((await Promise.race([done, deadline])) === "late") interrupting.abort();
      await done;
      // Not before: what is in hand may yet fail, and nobody else shall have a later message of its key meanwhile.
      giveBack([...stash.takeAll(), ...unstarted.filter(({ pending }) => pending === undefined)]);
    },
    async close() {
      stop();
      hints?.close();
      await feed.close();
      await guard.stop();
    },
  };
}
