import { setTimeout as sleep } from "node:timers/promises";
import { telemetry } from "../telemetry/channels.ts";
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

  async function probe(error: unknown): Promise<boolean> {
    telemetry.store.publish({ consumer, state: "away", error });
    for (let pauseMs = firstProbeMs; !stop.aborted; pauseMs = Math.min(longestProbeMs, pauseMs * 2)) {
      await sleep(pauseMs * (0.5 + random() / 2), undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) break;
      try {
        await store.ping();
        telemetry.store.publish({ consumer, state: "back" });
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
