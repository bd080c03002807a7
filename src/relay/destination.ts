import type { Answer } from "./answer.ts";
import type { Effect } from "./effect.ts";

export interface DeliveryContext {
  /** Aborted when the time for the call is over, and when the relay has to stop now. */
  readonly signal: AbortSignal;
}

/** How effects are sent to one destination. */
export interface DeliveryOptions {
  /** Calls side by side, for each relay. Default 16; for destinations that take batches 2. */
  readonly concurrency?: number | undefined;
  /** Most effects in one call of a destination that takes batches. Default 500. */
  readonly maxBatch?: number | undefined;
  /** How long one call may take, in milliseconds; after that nobody knows whether it was taken. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Failed attempts that may be the effect's own fault, after which it goes to quarantine. Default 20. While a destination
   * fails whatever it is sent, none counts.
   */
  readonly maxAttempts?: number | undefined;
  /** Wait after the first failed attempt, in milliseconds; doubles with each one more. Default 1,000. */
  readonly retryDelayMs?: number | undefined;
  /** Longest wait between two attempts, in milliseconds. Default 300,000; where the destination is at fault 60,000. */
  readonly maxRetryDelayMs?: number | undefined;
  /** Different effects that fail in a row, after which the destination is given a pause. Default 5. */
  readonly pauseAfter?: number | undefined;
  /** What becomes of later effects of a key when one goes to quarantine: they `wait` for the decision, or `go-on`. Default `wait`. */
  readonly afterRefusal?: "wait" | "go-on" | undefined;
}

/**
 * Where effects go. Has one of the two ways to deliver. What it says must be true: nothing is `sent` that the other side
 * has not confirmed.
 */
export interface Destination extends DeliveryOptions {
  /** Delivers one effect. What it throws says how it failed. */
  deliver?(effect: Effect, context: DeliveryContext): Promise<Answer>;
  /**
   * Delivers many, in the order they are given where they have one key: an effect must not arrive before an earlier one
   * of its key. Answers by position. `undefined`: not tried, because an earlier one of its key failed.
   */
  deliverBatch?(
    effects: readonly Effect[],
    context: DeliveryContext,
  ): Promise<readonly (Answer | undefined)[]>;
  /** Called before the first delivery. */
  open?(): Promise<void>;
  /** Called when nothing is in flight any more. */
  close?(): Promise<void>;
}

/**
 * A function of yours as a destination. If it resolves, the effect is sent, and what it resolved with is kept; unless
 * that is `again(error)` or `refused(error)`. If it throws, it is sent again, or refused with a PermanentError.
 */
export type DeliverFunction = (effect: Effect, context: DeliveryContext) => unknown;
