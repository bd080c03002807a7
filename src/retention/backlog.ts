import type { Backlog } from "../store/cleanup.ts";
import type { Store } from "../store/store.ts";
import { showDuration } from "./duration.ts";
import type { ConsumerRetention } from "./read-retention.ts";

/** How far forgetting has come behind what windows say. */
export interface CleanupBacklog extends Backlog {
  /** The oldest identity that should be gone is further beyond its window than sweeps and a twentieth of the window explain. */
  readonly behind: boolean;
}

const sweepsBetween = 3;
const partOfWindow = 20;

/** Of consumers that may forget; what waits for a source is not behind. */
export async function readBacklog(
  store: Pick<Store, "cleanup">,
  consumers: readonly ConsumerRetention[],
  everyMs: number,
): Promise<CleanupBacklog> {
  const free = consumers.flatMap(({ consumer, before, waitsFor, windowMs }) =>
    before === undefined || windowMs === undefined || waitsFor.length > 0
      ? []
      : [{ consumer, before, windowMs }],
  );
  const backlog = await store.cleanup.backlog(free.map(({ consumer, before }) => ({ consumer, before })));
  const shortest = Math.min(...free.map(({ windowMs }) => windowMs));
  const allowedMs = Math.max(sweepsBetween * everyMs, shortest / partOfWindow);
  return { ...backlog, behind: backlog.behindMs > allowedMs };
}

/** One line for people. */
export function describeBacklog({
  behind,
  behindMs,
  oldest,
  neededPerSecond,
  donePerSecond,
}: CleanupBacklog): string {
  if (!behind) return "Cleanup keeps up: nothing lies far beyond its window.";
  const rate = (value: number | undefined): string =>
    value === undefined ? "an unknown number" : value < 10 ? value.toFixed(1) : String(Math.round(value));
  return (
    `Cleanup is behind: what was applied at ${oldest?.toISOString() ?? "an unknown time"} should have been gone for ` +
    `${showDuration(behindMs)}. ${rate(neededPerSecond)} identities a second come in and have to go, and the last sweep ` +
    `forgot ${rate(donePerSecond)} a second. It works more of its time until it has caught up; if that is not enough, raise ` +
    "its duty (--duty), or forget by generations: inbox retention rotate."
  );
}
