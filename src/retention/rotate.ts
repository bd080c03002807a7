import { InboxError } from "../errors.ts";
import type { Rotation } from "../store/retention.ts";
import type { Store } from "../store/store.ts";
import { readRetention } from "./read-retention.ts";

/** What a rotation came to, and what it waits for. */
export interface Rotated {
  /**
   * `rotated`: another generation is open. `too young`: the closed one is not older than the longest window yet. `waits`:
   * it may be, but a source makes no progress, or none is known. `busy`: claims were in the way; try again soon.
   */
  readonly ended: Exclude<Rotation, "window too short"> | "waits";
  readonly windowMs: number;
  readonly waitsFor: readonly string[];
  readonly durationMs: number;
}

export interface RotateSettings {
  readonly store: Store;
  readonly skewMs: number;
  readonly lockTimeoutMs: number;
}

/**
 * Closes the open generation, and forgets the one that was closed before, if every window and every source allows it.
 * Throws `window-too-short` where a consumer has no window, for a generation holds the identities of all.
 */
export async function rotate({ store, skewMs, lockTimeoutMs }: RotateSettings): Promise<Rotated> {
  const startedAt = performance.now();
  const consumers = await readRetention(store);
  const endless = [
    ...consumers.filter(({ windowMs }) => windowMs === undefined).map(({ consumer }) => consumer),
    ...(await store.cleanup.withoutWindow()),
  ];
  if (endless.length > 0 || consumers.length === 0) {
    const whose =
      endless.length === 0
        ? "no consumer has a window"
        : `${endless.map((one) => JSON.stringify(one)).join(", ")} keeps identities for ever`;
    throw new InboxError(
      "window-too-short",
      `A generation goes with the identities of all consumers, and ${whose}. Set a window first: inbox retention window`,
    );
  }
  const windowMs = Math.max(...consumers.map((one) => one.windowMs ?? 0));
  const held = consumers.filter(
    (one) => one.sources === 0 || one.waitsFor.length > 0 || one.before === undefined,
  );
  const waitsFor = [
    ...new Set(
      held.flatMap(({ consumer, waitsFor: sources }) => (sources.length > 0 ? sources : [consumer])),
    ),
  ];
  const cuts = consumers.map(({ before }) => before?.getTime() ?? 0);
  // Nothing is forgotten while somebody waits; the first rotation forgets nothing and may always be done.
  const notAfter = new Date(held.length > 0 ? 0 : Math.min(...cuts));
  const skew = Math.min(skewMs, Math.floor(windowMs / 2));
  const ended = await store.retention.rotate({ windowMs, skewMs: skew, notAfter, lockTimeoutMs });
  if (ended === "window too short")
    throw new InboxError("window-too-short", "A window was made longer meanwhile. Try again.");
  const durationMs = performance.now() - startedAt;
  // Dying before this only costs time: claims look into the closed generation until the next call has noted it.
  if (ended !== "busy") await store.retention.noteReach({ lockTimeoutMs });
  return {
    ended: ended === "too young" && held.length > 0 ? "waits" : ended,
    ...{ windowMs, waitsFor, durationMs },
  };
}
