import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { InboxError } from "../errors.ts";
import type { CleanupState } from "../store/cleanup.ts";
import { declareWindow } from "../store/declare-window.ts";
import type { SourceProgress } from "../store/progress.ts";
import type { Store } from "../store/store.ts";
import { tellWarning } from "../telemetry/tell-warning.ts";
import { wholeNumber } from "../whole-number.ts";
import { describeBacklog, readBacklog, type CleanupBacklog } from "./backlog.ts";
import { readRetention, type ConsumerRetention } from "./read-retention.ts";
import { rotate, type Rotated } from "./rotate.ts";
import { forgetStrays } from "./strays.ts";
import { sweep, type Sweep } from "./sweep.ts";

export interface CleanupOptions {
  /** `postgres(pool)` over a pool of its own with one connection, so that intake never waits for it. */
  readonly store: Store;
  /** How long identities are kept, in milliseconds, by consumer; beside what inboxes and `inbox retention window` set. The longest wins. */
  readonly windowsMs?: Readonly<Record<string, number>> | undefined;
  /** How often the ledger is swept, in milliseconds, by whichever process comes first. Default 600,000 (ten minutes). */
  readonly everyMs?: number | undefined;
  /**
   * By how much producers' clocks may run ahead of the database's, in milliseconds; at most half a window. Default
   * 3,600,000 (an hour).
   */
  readonly skewMs?: number | undefined;
  /** How long one batch may take, in milliseconds: batches grow and shrink to that. Default 50. */
  readonly batchMs?: number | undefined;
  /**
   * How much of the time is spent on batches, in per cent; the rest is paused. A sweep that is behind goes up to 50 by itself,
   * and back where a batch had to give way to others' locks. Default 10.
   */
  readonly dutyPercent?: number | undefined;
  /** How long a batch may wait for a lock, in milliseconds, before it gives way. Default 100. */
  readonly lockTimeoutMs?: number | undefined;
  /** How long after its last sign of life another process may take over, in milliseconds. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** Told of each sweep of this process. */
  readonly onSweep?: ((swept: Sweep) => void) | undefined;
}

/** What is known of forgetting, for people. */
export interface CleanupStatus {
  readonly consumers: readonly ConsumerRetention[];
  readonly sources: readonly SourceProgress[];
  readonly cleanup: CleanupState;
  /** How far it is behind what windows say. */
  readonly backlog: CleanupBacklog;
}

/** How forgetting goes, as this process knows it. */
export interface CleanupHealth {
  /**
   * `ok`; `behind`: what should be gone lies far beyond its window; `failed`: the last sweep of this process did, and is
   * tried again. `idle`: this process has begun no sweep yet, or another one does it.
   */
  readonly status: "ok" | "behind" | "failed" | "idle";
  /** As the last sweep of this process found it. */
  readonly backlog: CleanupBacklog | undefined;
}

/** Forgets identities that are older than their window. Any number of processes may run it: one works at a time. */
export interface Cleanup extends AsyncDisposable {
  /** Sweeps again and again until it is stopped. Rejects if the database is away or its schema does not fit. Twice is harmless. */
  start(): Promise<void>;
  /** Ends after the batch that runs; what was forgotten stays so. Twice is harmless. */
  stop(): Promise<void>;
  /** One sweep now, unless another process is at it. Rejects if the database fails. */
  once(options?: { readonly signal?: AbortSignal | undefined }): Promise<Sweep>;
  status(): Promise<CleanupStatus>;
  /** For a health check; asks nobody. */
  health(): CleanupHealth;
  /**
   * Forgets by generations instead of sweeps, once it is time: see `inbox retention rotate`. Throws `window-too-short` where
   * a consumer has no window. Needs the owner of the tables.
   */
  rotate(): Promise<Rotated>;
}

// Longer than the server's deadlock_timeout, so that a vacuum in the way is ended; claims wait as long behind it.
const rotateLockTimeoutMs = 1_500;

/** A cleanup. Throws `invalid-option` for options that break their rules. Opens nothing by itself. */
export function createCleanup(options: CleanupOptions): Cleanup {
  if (typeof options.store?.cleanup?.take !== "function") {
    throw new InboxError("invalid-option", "store must be a store, such as postgres(pool).");
  }
  const { store } = options;
  const everyMs = wholeNumber("everyMs", options.everyMs, 600_000, 100, 86_400_000);
  const leaseMs = wholeNumber("leaseMs", options.leaseMs, 30_000, 100, 3_600_000);
  let backlog: CleanupBacklog | undefined;
  let behind = false;
  let failed = false;
  const settings = {
    ...{ store, workerId: randomUUID(), leaseMs, everyMs },
    onBacklog(found: CleanupBacklog): void {
      backlog = found;
      if (found.behind !== behind) tellWarning(describeBacklog(found));
      behind = found.behind;
    },
    skewMs: wholeNumber("skewMs", options.skewMs, 3_600_000, 0, 31_536_000_000),
    batchMs: wholeNumber("batchMs", options.batchMs, 50, 1, 60_000),
    dutyPercent: wholeNumber("dutyPercent", options.dutyPercent, 10, 1, 100),
    lockTimeoutMs: wholeNumber("lockTimeoutMs", options.lockTimeoutMs, 100, 1, 60_000),
  };
  const windows = Object.entries(options.windowsMs ?? {}).map(
    ([consumer, windowMs]) =>
      [consumer, wholeNumber(`windowsMs.${consumer}`, windowMs, windowMs, 1, 3_155_760_000_000)] as const,
  );
  const stopping = new AbortController();
  let loop: Promise<void> | undefined;
  let declared = false;

  const declare = async (): Promise<void> => {
    for (const [consumer, windowMs] of declared ? [] : windows) {
      await declareWindow(store.cleanup, consumer, windowMs, tellWarning);
    }
    declared = true;
  };

  async function once(notWithinMs: number, signal: AbortSignal | undefined): Promise<Sweep> {
    await declare();
    const swept = await sweep({ ...settings, notWithinMs, signal });
    failed = false;
    // Whoever does it now tells how it goes.
    if (swept.ended === "busy") backlog = undefined;
    if (swept.ended !== "not due" && swept.ended !== "busy") options.onSweep?.(swept);
    return swept;
  }

  async function run(): Promise<void> {
    // Whoever finds another one at it looks again when that one's lease could have ended.
    const wait = Math.min(everyMs, leaseMs);
    while (!stopping.signal.aborted) {
      await once(everyMs, stopping.signal).catch((error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        failed = true;
        tellWarning(`Cleanup failed, and will be tried again: ${text}`);
      });
      await pause(wait, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  const stop = async (): Promise<void> => {
    stopping.abort();
    await loop;
  };

  return {
    async start() {
      await store.ping();
      await declare();
      loop ??= run();
    },
    stop,
    once: ({ signal } = {}) => once(0, signal),
    async rotate() {
      const rotated = await rotate({ ...settings, lockTimeoutMs: rotateLockTimeoutMs });
      // Answers and attempts of what went with the generation. Two at once are in each other's way, and nothing worse.
      if (rotated.ended === "rotated")
        await forgetStrays({
          ...settings,
          dutyPercent: 100,
          signal: stopping.signal,
          holds: async () => true,
        }).catch((error: unknown) => {
          const text = error instanceof Error ? error.message : String(error);
          tellWarning(`The ledger is rotated, but not all that went with it is gone: ${text}`);
        });
      return rotated;
    },
    async status() {
      const [consumers, sources, cleanup] = await Promise.all([
        readRetention(store),
        store.progress.list(),
        store.cleanup.state(),
      ]);
      return { consumers, sources, cleanup, backlog: await readBacklog(store, consumers, everyMs) };
    },
    health: () => ({
      status: failed ? "failed" : backlog === undefined ? "idle" : backlog.behind ? "behind" : "ok",
      backlog,
    }),
    [Symbol.asyncDispose]: stop,
  };
}
