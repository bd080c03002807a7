import type { Delays } from "../back-off.ts";
import { InboxError } from "../errors.ts";
import { wholeNumber } from "../whole-number.ts";

/** How the wait between two attempts grows. */
export interface BackOff {
  /** Wait after the first failure, in milliseconds. Default 1,000. */
  readonly delayMs?: number | undefined;
  /** What each further wait is multiplied with. Default 2. */
  readonly factor?: number | undefined;
  /** Longest wait, in milliseconds. Default 300,000; for the environment 60,000. */
  readonly maxDelayMs?: number | undefined;
  /** The part of the wait that is left to chance, 0 to 1, so that a herd comes apart. Default 0.5. */
  readonly jitter?: number | undefined;
}

/** What becomes of a message that failed. */
export interface RetryOptions extends BackOff {
  /** Failed attempts after which a message goes to quarantine. Default 5. */
  readonly maxAttempts?: number | undefined;
  /** Time since its first failed attempt after which another one sends it to quarantine, in milliseconds. Default: none. */
  readonly maxElapsedMs?: number | undefined;
  /**
   * For failures that are not the message's fault: something it needs is away. These count nothing and have no budget,
   * so an outage of any length sends nothing to quarantine.
   */
  readonly environment?: BackOff | undefined;
}

export interface RetryPolicy extends Delays {
  readonly maxAttempts: number;
  readonly maxElapsedMs: number | undefined;
  readonly environment: Delays;
}

const dayMs = 86_400_000;

/** Checks every option; throws `invalid-option` with field, rule and value. */
export function retryPolicy(options: RetryOptions = {}): RetryPolicy {
  const { maxAttempts, maxElapsedMs, environment } = options;
  return {
    ...delays("retry.", options, 300_000),
    maxAttempts: wholeNumber("retry.maxAttempts", maxAttempts, 5, 1, 1_000_000),
    maxElapsedMs:
      maxElapsedMs === undefined
        ? undefined
        : wholeNumber("retry.maxElapsedMs", maxElapsedMs, 0, 0, 3_650 * dayMs),
    environment: delays("retry.environment.", environment ?? {}, 60_000),
  };
}

function delays(path: string, { delayMs, factor, maxDelayMs, jitter }: BackOff, longestMs: number): Delays {
  return {
    delayMs: wholeNumber(`${path}delayMs`, delayMs, 1_000, 0, dayMs),
    factor: numberIn(`${path}factor`, factor ?? 2, 1, 100),
    maxDelayMs: wholeNumber(`${path}maxDelayMs`, maxDelayMs, longestMs, 0, 7 * dayMs),
    jitter: numberIn(`${path}jitter`, jitter ?? 0.5, 0, 1),
  };
}

function numberIn(field: string, value: number, least: number, most: number): number {
  if (typeof value === "number" && value >= least && value <= most) return value;
  throw new InboxError("invalid-option", `${field} must be a number from ${least} to ${most}; got ${value}.`);
}

/** Whether a failed attempt was the last one. */
export const isUsedUp = (
  { maxAttempts, maxElapsedMs }: RetryPolicy,
  attempts: number,
  elapsedMs: number,
): boolean => attempts >= maxAttempts || (maxElapsedMs !== undefined && elapsedMs >= maxElapsedMs);

export { delayAfter } from "../back-off.ts";
