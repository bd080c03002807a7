import { setTimeout as pause } from "node:timers/promises";
import { hasCode } from "../errors.ts";
import { stretchPages, type CleanupBatch, type CleanupLease } from "../store/cleanup.ts";
import type { Store } from "../store/store.ts";
import { readBacklog, type CleanupBacklog } from "./backlog.ts";
import { readRetention, type ConsumerRetention } from "./read-retention.ts";
import { forgetStrays } from "./strays.ts";

/** What a sweep did. */
export interface Sweep {
  /**
   * `done`: all that was due is forgotten. `busy`: another worker is at it. `not due`: the last sweep was not long ago.
   * `lost`: another worker took the lease, because this one gave no sign of life. `stopped`: by the signal.
   */
  readonly ended: "done" | "busy" | "not due" | "lost" | "stopped";
  readonly identities: number;
  /** Answers and attempts without an identity, and discarded identities, that went; looked for once a day. */
  readonly strays: number;
  readonly batches: number;
  /** Batches that gave way to somebody's lock, and were tried again. */
  readonly gaveWay: number;
  readonly durationMs: number;
  /** What is set for each consumer, and what some of them wait for; before the sweep. */
  readonly consumers: readonly ConsumerRetention[];
  /** Before the sweep; `undefined` where there was none. */
  readonly backlog: CleanupBacklog | undefined;
}

export interface SweepSettings {
  readonly store: Store;
  readonly workerId: string;
  readonly leaseMs: number;
  /** Not if a sweep ended within this time, in milliseconds; 0: in any case. */
  readonly notWithinMs: number;
  readonly everyMs: number;
  readonly skewMs: number;
  readonly batchMs: number;
  readonly dutyPercent: number;
  readonly lockTimeoutMs: number;
  /** Told before anything is forgotten. */
  readonly onBacklog: (backlog: CleanupBacklog) => void;
  readonly signal: AbortSignal | undefined;
}

interface Counts {
  identities: number;
  strays: number;
  batches: number;
  gaveWay: number;
}

const mostStretches = 32;
// Where it is behind, a sweep works up to half of the time, unless that puts it in others' way.
const mostDutyPercent = 50;
const dutyStep = 1.25;

/**
 * One sweep: moves the horizons to where windows and sources allow, then forgets what is older, in batches, each a
 * transaction of its own, which give way to claims and pause between. A batch that was cut off is repeated by the next
 * sweep. Dying anywhere loses nothing: horizons go before deletes, and a lease ends by itself.
 */
export async function sweep(settings: SweepSettings): Promise<Sweep> {
  const { store, workerId, leaseMs, notWithinMs } = settings;
  const startedAt = performance.now();
  const counts: Counts = { identities: 0, strays: 0, batches: 0, gaveWay: 0 };
  const result = (
    ended: Sweep["ended"],
    consumers: readonly ConsumerRetention[],
    backlog?: CleanupBacklog,
  ): Sweep => ({
    ...{ ended, ...counts, consumers, backlog },
    durationMs: performance.now() - startedAt,
  });
  const lease = await store.cleanup.take(workerId, leaseMs, notWithinMs);
  if (lease === undefined) {
    const { workerId: holder } = await store.cleanup.state();
    return result(holder === undefined && notWithinMs > 0 ? "not due" : "busy", []);
  }
  let failure: string | undefined;
  try {
    const consumers = await readRetention(store);
    await moveHorizons(settings, consumers);
    const backlog = await readBacklog(store, consumers, settings.everyMs);
    settings.onBacklog(backlog);
    const ended = await forgetAll(settings, lease, counts, backlog.behind);
    if (ended === "done" && (await store.cleanup.strays()).due)
      counts.strays = await forgetStrays({ ...settings, holds: () => store.cleanup.keep(lease) });
    return result(ended, consumers, backlog);
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
    throw error;
  } finally {
    await store.cleanup.give(lease, failure).catch(() => undefined);
  }
}

/** Nothing of a consumer moves while one of its sources makes no progress, or none is known. */
async function moveHorizons(
  { store, skewMs }: SweepSettings,
  consumers: readonly ConsumerRetention[],
): Promise<void> {
  for (const { consumer, producer, windowMs, waitsFor, before } of consumers) {
    if (windowMs === undefined || before === undefined || waitsFor.length > 0) continue;
    // A horizon that is nearly now would find messages late that have just come.
    const skew = Math.min(skewMs, Math.floor(windowMs / 2));
    await store.retention.advance({ consumer, producer }, { skewMs: skew, notAfter: before });
  }
}

async function forgetAll(
  settings: SweepSettings,
  lease: CleanupLease,
  counts: Counts,
  behind: boolean,
): Promise<Sweep["ended"]> {
  const { store, batchMs, lockTimeoutMs, signal } = settings;
  const due = await store.cleanup.due(lease);
  const duty = createDuty(settings.dutyPercent, behind);
  let most = 1;
  for (let next = 0; next < due.length;) {
    if (signal?.aborted === true) return "stopped";
    const firstPage = due[next] as number;
    const stretches = neighbours(due, next, most);
    const start = performance.now();
    const forgotten = await orGiveWay(store, lease, {
      ...{ firstPage, pages: stretches * stretchPages, lockTimeoutMs },
    });
    const took = Math.max(1, performance.now() - start);
    if (forgotten === "lost") return "lost";
    duty.tell(forgotten === "gave way");
    if (forgotten === "gave way") {
      counts.gaveWay++;
      most = Math.max(1, Math.floor(most / 2));
    } else {
      counts.identities += forgotten.identities;
      counts.batches++;
      next += stretches;
      most = Math.min(mostStretches, Math.max(1, Math.round(stretches * Math.min(2, batchMs / took))));
    }
    const percent = duty.percent();
    const restMs = Math.min((took * (100 - percent)) / percent, settings.leaseMs / 3);
    if (next < due.length) await rest(restMs, signal);
  }
  return "done";
}

/** How much of the time goes to batches: what was asked for, and more by and by while it is behind and in nobody's way. */
export function createDuty(
  askedPercent: number,
  behind: boolean,
): { percent(): number; tell(gaveWay: boolean): void } {
  const most = behind ? Math.max(askedPercent, mostDutyPercent) : askedPercent;
  let percent = askedPercent;
  return {
    percent: () => percent,
    tell(gaveWay) {
      percent = gaveWay ? Math.max(askedPercent, percent / 2) : Math.min(most, percent * dutyStep);
    },
  };
}

/** How many stretches from here on follow one another without a gap. */
function neighbours(due: readonly number[], from: number, most: number): number {
  let count = 1;
  while (count < most && due[from + count] === (due[from] as number) + count * stretchPages) count++;
  return count;
}

async function orGiveWay(store: Store, lease: CleanupLease, batch: CleanupBatch) {
  try {
    return await store.cleanup.forget(lease, batch);
  } catch (error) {
    // A lock that was not had in time, or a deadlock that this side lost.
    if (hasCode(error, "55P03") || hasCode(error, "40P01")) return "gave way";
    throw error;
  }
}

const rest = async (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  pause(ms, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    if (signal?.aborted !== true) throw error;
  });
