import { setTimeout as sleep } from "node:timers/promises";
import { telemetry } from "../telemetry/channels.ts";
import { tellWarning } from "../telemetry/tell-warning.ts";
import { errorText } from "./classify-error.ts";
import type { Store } from "../store/store.ts";

/** Knows whether the database is there, and lets everybody who needs it wait for it together. */
export interface StoreWatch {
  /** Resolves true when the database answers again, false if the run stops first. */
  wait(error: unknown): Promise<boolean>;
  /** Whether the database is away as far as is known. */
  away(): boolean;
}

const firstProbeMs = 50;
const longestProbeMs = 5_000;

/**
 * One prober for all lanes, with growing pauses; lanes that wait take nothing new, so intake comes to rest by itself
 * and no attempt is used up. Tells once that the database went away, and once that it is back.
 */
export function createStoreWatch(
  store: Store,
  consumer: string,
  random: () => number,
  stop: AbortSignal,
): StoreWatch {
  let probing: Promise<boolean> | undefined;

  function tell(state: "away" | "back", error?: unknown): void {
    if (telemetry.store.hasSubscribers) telemetry.store.publish({ consumer, state, error });
    else if (state === "back") tellWarning("The database is back.");
    else tellWarning(`The database does not answer; it is waited for: ${errorText(error)}`);
  }

  async function probe(error: unknown): Promise<boolean> {
    tell("away", error);
    for (let pauseMs = firstProbeMs; !stop.aborted; pauseMs = Math.min(longestProbeMs, pauseMs * 2)) {
      await sleep(pauseMs * (0.5 + random() / 2), undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) break;
      try {
        await store.ping();
        tell("back");
        return true;
      } catch {
        // Told already.
      }
    }
    return false;
  }

  return {
    wait(error) {
      probing ??= probe(error).finally(() => (probing = undefined));
      return probing;
    },
    away: () => probing !== undefined,
  };
}
