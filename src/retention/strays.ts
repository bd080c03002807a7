import { setTimeout as pause } from "node:timers/promises";
import { hasCode } from "../errors.ts";
import type { StrayKind } from "../store/cleanup.ts";
import type { Store } from "../store/store.ts";

export interface StraysSettings {
  readonly store: Pick<Store, "cleanup">;
  readonly batchMs: number;
  readonly dutyPercent: number;
  readonly lockTimeoutMs: number;
  readonly leaseMs: number;
  readonly signal: AbortSignal | undefined;
  /** Whether it is still this worker's turn; asked before each batch. */
  readonly holds: () => Promise<boolean>;
}

const kinds: readonly StrayKind[] = ["answer", "attempt", "discarded"];
const firstStep = 64;
const mostStep = 4_096;

/**
 * Forgets what no batch of identities takes along: answers and failed attempts whose identity went with its generation, or
 * never came to be, and identities that were discarded a window ago. In batches of pages (of entries), which give way and
 * pause as those of identities do. Resolves with how many rows went.
 */
export async function forgetStrays(settings: StraysSettings): Promise<number> {
  const { store, batchMs, dutyPercent, lockTimeoutMs, leaseMs, signal, holds } = settings;
  const { ends } = await store.cleanup.strays();
  let rows = 0;
  for (const kind of kinds) {
    let step = firstStep;
    for (let from = 0; from < ends[kind];) {
      if (signal?.aborted === true || !(await holds())) return rows;
      const start = performance.now();
      const gone = await store.cleanup
        .forgetStrays(kind, { from, to: from + step, lockTimeoutMs })
        .catch((error: unknown) => {
          // A lock that was not had in time, or a deadlock that this side lost.
          if (hasCode(error, "55P03") || hasCode(error, "40P01")) return undefined;
          throw error;
        });
      const took = Math.max(1, performance.now() - start);
      rows += gone ?? 0;
      // What somebody holds goes another day.
      if (gone !== undefined || step === 1) from += step;
      const factor = gone === undefined ? 0.5 : Math.min(2, batchMs / took);
      step = Math.min(mostStep, Math.max(1, Math.round(step * factor)));
      const restMs = Math.min((took * (100 - dutyPercent)) / dutyPercent, leaseMs / 3);
      await pause(restMs, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    }
  }
  return rows;
}
