import { randomUUID } from "node:crypto";
import { InboxError } from "../errors.ts";
import type { Store } from "../store/store.ts";
import { relayTelemetry } from "../telemetry/relay-channels.ts";
import { wholeNumber } from "../whole-number.ts";
import { createCrashGuard } from "./crash-guard.ts";
import { destinationSettings } from "./destination-settings.ts";
import { destinationWorker, type DestinationHealth } from "./destination-worker.ts";
import type { DeliverFunction, Destination } from "./destination.ts";
import { createReports } from "./reports.ts";

export interface RelayOptions {
  readonly store: Store;
  /** Where effects go, by the name they are sent to. Effects to other names wait for a relay that knows these. */
  readonly destinations: Readonly<Record<string, Destination | DeliverFunction>>;
  /** How often an idle relay looks for new effects, in milliseconds: one small query for all destinations. Default 25. */
  readonly pollIntervalMs?: number | undefined;
  /**
   * How long effects stay in the hands of a relay that has died, in milliseconds. A living one prolongs it. Default
   * 15,000.
   */
  readonly leaseMs?: number | undefined;
  /** How long `stop` waits for answers, in milliseconds; then it aborts what is in flight. Default 10,000. */
  readonly stopTimeoutMs?: number | undefined;
  /** How often an effect may kill the relay that sends it before it goes to quarantine, as `crashed`. Default 3. */
  readonly maxCrashes?: number | undefined;
  /** A number from 0 to 1, for jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** Sends effects to their destinations. Any number of relays, in any number of processes, share the work. */
export interface Relay extends AsyncDisposable {
  /** Rejects if the database cannot be had; then it may be called again. Twice is harmless. */
  start(): Promise<void>;
  /**
   * Takes nothing more, waits for what is in flight, writes what became of it, and gives the rest back. Twice is
   * harmless.
   */
  stop(): Promise<void>;
  /** Looks for effects now: for a process that has just committed some. */
  wake(): void;
  health(): Readonly<Record<string, DestinationHealth>>;
}

const slowLookMs = 5;

/** Makes a relay. Throws `invalid-option`. */
export function createRelay(options: RelayOptions): Relay {
  const { store } = options;
  if (typeof store?.outbox?.take !== "function") {
    throw new InboxError("invalid-option", "store must be a store, such as postgres(pool).");
  }
  const names = Object.keys(options.destinations ?? {});
  if (names.length === 0) {
    throw new InboxError("invalid-option", "destinations must have at least one destination.");
  }
  const pollIntervalMs = wholeNumber("pollIntervalMs", options.pollIntervalMs, 25, 1, 60_000);
  const leaseMs = wholeNumber("leaseMs", options.leaseMs, 15_000, 100, 3_600_000);
  const stopTimeoutMs = wholeNumber("stopTimeoutMs", options.stopTimeoutMs, 10_000, 0, 3_600_000);
  const maxCrashes = wholeNumber("maxCrashes", options.maxCrashes, 3, 1, 1_000);
  const random = options.random ?? Math.random;
  const settings = names.map((name) => destinationSettings(name, options.destinations[name]!));
  const watch = storeWatch();
  const guard = createCrashGuard({ store, leaseMs, maxCrashes, storeFailed: watch.storeFailed });
  const workers = settings.map((destination) =>
    destinationWorker(destination, {
      ...{ store: store.outbox, relayId: randomUUID(), guard, leaseMs, random },
      ...watch,
    }),
  );

  const reports = createReports({
    ...{ store: store.outboxOperator, relayId: guard.relayId, storeFailed: watch.storeFailed },
    health: () => workers.map((worker) => [worker.name, worker.health()] as const),
  });

  let slowUntil = 0;
  let poll: NodeJS.Timeout | undefined;
  let started: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;

  /** An idle destination costs a part of one query; a busy one looks after itself. */
  async function look(): Promise<void> {
    const idle = workers.filter((worker) => worker.idle);
    if (idle.length > 0) {
      try {
        const started = performance.now();
        const names = idle.map(({ name }) => name);
        const waiting = new Set(await store.outbox.waiting(names, started < slowUntil));
        // Where that is slow, an old snapshot may keep what was sent in the indexes.
        const now = performance.now();
        if (now - started > slowLookMs) slowUntil = now + 60_000;
        watch.storeWorks();
        for (const worker of idle) if (waiting.has(worker.name)) worker.wake();
      } catch (error) {
        watch.storeFailed(error);
      }
    }
    if (stopped !== undefined) return;
    poll = setTimeout(() => void look(), watch.away() ? Math.max(pollIntervalMs, 500) : pollIntervalMs);
  }

  async function start(): Promise<void> {
    await store.outbox.openLanes(names);
    await guard.start();
    await reports.start();
    for (const worker of workers) worker.start();
    void look();
  }

  async function stop(): Promise<void> {
    // What is still starting is let come up, so that it can be taken down.
    try {
      await started;
    } catch {
      return;
    }
    clearTimeout(poll);
    await Promise.all(workers.map((worker) => worker.stop(stopTimeoutMs)));
    await reports.stop();
    await guard.stop();
  }

  return {
    start() {
      started ??= start().catch((error: unknown) => {
        started = undefined;
        throw error;
      });
      return started;
    },
    stop: () => (stopped ??= stop()),
    wake() {
      for (const worker of workers) worker.wake();
    },
    health: () => Object.fromEntries(workers.map((worker) => [worker.name, worker.health()])),
    [Symbol.asyncDispose]() {
      return this.stop();
    },
  };
}

/** Tells once when the database goes away, and once when it is back. */
function storeWatch(): {
  readonly storeFailed: (error: unknown) => void;
  readonly storeWorks: () => void;
  readonly away: () => boolean;
} {
  let away = false;
  return {
    storeFailed(error) {
      if (!away) relayTelemetry.store.publish({ state: "away", error });
      away = true;
    },
    storeWorks() {
      if (away) relayTelemetry.store.publish({ state: "back", error: undefined });
      away = false;
    },
    away: () => away,
  };
}
