import type { DestinationSettings } from "./destination-settings.ts";

/** How many effects of a destination a relay has in hand at most. */
export interface HandSize {
  readonly size: number;
  /** A call took so many milliseconds. */
  answered(tookMs: number): void;
}

const sendableMs = 100;
const mostInHand = 1_000;

/**
 * For a destination that takes batches as many as fill its calls; for one that does not, what it takes in a tenth of a
 * second, and at least two for each call. With 32 in hand for calls of 1 ms, taking and settling cost twice as much
 * processor time as the calls themselves.
 */
export function handSize({
  batches,
  maxBatch,
  concurrency,
}: Pick<DestinationSettings, "batches" | "maxBatch" | "concurrency">): HandSize {
  const least = batches ? maxBatch * concurrency : Math.max(concurrency * 2, 32);
  let callMs: number | undefined;
  return {
    get size() {
      if (batches || callMs === undefined) return least;
      const sendable = Math.round((concurrency * sendableMs) / Math.max(callMs, 0.1));
      return Math.max(least, Math.min(mostInHand, sendable));
    },
    answered(tookMs) {
      callMs = callMs === undefined ? tookMs : callMs + (tookMs - callMs) / 32;
    },
  };
}
