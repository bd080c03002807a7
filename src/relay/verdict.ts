import { delayAfter } from "../back-off.ts";
import type { TakenEffect, Verdict } from "../store/outbox.ts";
import { isRefused, isSent, type Answer } from "./answer.ts";
import type { DestinationSettings } from "./destination-settings.ts";

/** Where the destination is at fault, its own pause decides; a key must not wait for long when it is back. */
const longestForDestinationMs = 60_000;

/**
 * What is to become of an effect after its destination's answer. `healthy`: the destination takes other effects, so what
 * fails now may be at fault itself.
 */
export function verdictOf(
  taken: TakenEffect,
  answer: Answer,
  tookMs: number,
  healthy: boolean,
  settings: DestinationSettings,
  random: () => number,
): Verdict {
  const { lease, position } = taken;
  const base = {
    ...{ lease, position, delayMs: 0, counts: false, status: answer.status, tookMs },
    ...{ code: undefined, error: undefined, result: undefined },
  };
  if (isSent(answer)) {
    return { ...base, action: "remove", outcome: "sent", result: resultText(answer.result) };
  }
  const error = errorText(answer.error);
  const aside = settings.afterRefusal === "wait" ? "quarantined" : "aside";
  if (isRefused(answer)) {
    return { ...base, action: aside, outcome: "rejected", counts: true, code: "destination-refused", error };
  }
  const outcome = answer.ambiguous ? "ambiguous" : "failed";
  const counts = answer.fault === "effect" && healthy;
  if (counts && taken.counted + 1 >= settings.maxAttempts) {
    return { ...base, action: aside, outcome, counts, code: "attempts-exhausted", error };
  }
  const longest =
    answer.fault === "effect"
      ? settings.maxRetryDelayMs
      : Math.min(settings.maxRetryDelayMs, longestForDestinationMs);
  const delays = { delayMs: settings.retryDelayMs, factor: 2, maxDelayMs: longest, jitter: 0.5 };
  const delayMs = Math.max(answer.pauseMs ?? 0, delayAfter(delays, taken.attempts + 1, random));
  const code = answer.ambiguous ? "destination-unclear" : "destination-failed";
  return { ...base, action: "scheduled", outcome, counts, delayMs, code, error };
}

/** The verdict on an effect whose time is over. */
export const expiredVerdict = ({ lease, position }: TakenEffect): Verdict => ({
  ...{ lease, position, action: "remove", outcome: "expired", delayMs: 0, counts: false },
  ...{ code: undefined, error: undefined, status: undefined, result: undefined, tookMs: undefined },
});

/** The verdict on an effect that has killed its relay as often as allowed. */
export const crashedVerdict = (
  { lease, position }: TakenEffect,
  error: Error,
  { afterRefusal }: DestinationSettings,
): Verdict => ({
  ...{
    lease,
    position,
    outcome: "rejected",
    delayMs: 0,
    counts: true,
    code: "crashed",
    error: error.message,
  },
  action: afterRefusal === "wait" ? "quarantined" : "aside",
  ...{ status: undefined, result: undefined, tookMs: undefined },
});

/** Results and errors are a stranger's: whatever they are, they become some text. */
function resultText(result: unknown): string | undefined {
  if (result === undefined || typeof result === "string") return result;
  try {
    return JSON.stringify(result, (_key, part: unknown) => (typeof part === "bigint" ? `${part}` : part));
  } catch {
    return undefined;
  }
}

/** Whatever was thrown, as a text. */
export function errorText(error: unknown): string {
  try {
    if (error instanceof Error) {
      const cause =
        error.cause instanceof Error && error.cause.message !== "" ? `: ${error.cause.message}` : "";
      return `${error.message === "" ? error.name : error.message}${cause}`;
    }
    return String(error);
  } catch {
    return typeof error;
  }
}
