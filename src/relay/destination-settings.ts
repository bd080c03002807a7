import { InboxError } from "../errors.ts";
import { wholeNumber } from "../whole-number.ts";
import { isAnswer, sent } from "./answer.ts";
import type { DeliverFunction, Destination } from "./destination.ts";

/** A destination with every default filled in. */
export interface DestinationSettings {
  readonly name: string;
  readonly destination: Destination;
  readonly batches: boolean;
  readonly concurrency: number;
  readonly maxBatch: number;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  readonly retryDelayMs: number;
  readonly maxRetryDelayMs: number;
  readonly pauseAfter: number;
  readonly afterRefusal: "wait" | "go-on";
}

/** Checks a destination and its options; throws `invalid-option` with field, rule and value. */
export function destinationSettings(name: string, given: Destination | DeliverFunction): DestinationSettings {
  const destination = typeof given === "function" ? functionDestination(given) : given;
  const batches = typeof destination?.deliverBatch === "function";
  if (!batches && typeof destination?.deliver !== "function") {
    throw new InboxError(
      "invalid-option",
      `destinations: ${JSON.stringify(name)} must be a function, or have deliver or deliverBatch.`,
    );
  }
  const afterRefusal = destination.afterRefusal ?? "wait";
  if (afterRefusal !== "wait" && afterRefusal !== "go-on") {
    throw new InboxError(
      "invalid-option",
      `afterRefusal must be wait or go-on; got ${JSON.stringify(afterRefusal)}.`,
    );
  }
  const number = (
    field: "concurrency" | "maxBatch" | "timeoutMs" | "maxAttempts" | "pauseAfter",
    fallback: number,
    most: number,
  ): number => wholeNumber(field, destination[field], fallback, 1, most);
  return {
    ...{ name, destination, batches, afterRefusal },
    concurrency: number("concurrency", batches ? 2 : 16, 1_000),
    maxBatch: number("maxBatch", 500, 10_000),
    timeoutMs: number("timeoutMs", 30_000, 86_400_000),
    maxAttempts: number("maxAttempts", 20, 1_000_000),
    pauseAfter: number("pauseAfter", 5, 1_000_000),
    retryDelayMs: wholeNumber("retryDelayMs", destination.retryDelayMs, 1_000, 0, 86_400_000),
    maxRetryDelayMs: wholeNumber("maxRetryDelayMs", destination.maxRetryDelayMs, 300_000, 0, 604_800_000),
  };
}

const functionDestination = (deliver: DeliverFunction): Destination => ({
  async deliver(effect, context) {
    const value = await deliver(effect, context);
    return isAnswer(value) ? value : sent(value);
  },
});
