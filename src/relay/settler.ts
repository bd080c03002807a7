import type { OutboxStore, Verdict } from "../store/outbox.ts";
import { relayTelemetry } from "../telemetry/relay-channels.ts";
import type { HeldLanes } from "./held-lanes.ts";

/** Writes verdicts in batches: what has come in while one batch was written goes with the next. */
export interface Settler {
  add(verdict: Verdict): void;
  /** A lane may have nothing open any more. */
  poke(): void;
  /** Resolves when everything is written, or when it cannot be in so many milliseconds. */
  flushed(withinMs: number): Promise<void>;
}

export interface SettlerOptions {
  readonly store: OutboxStore;
  readonly destination: string;
  readonly relayId: string;
  readonly lanes: HeldLanes;
  /** So many verdicts are written. */
  readonly settled: (verdicts: readonly Verdict[]) => void;
  readonly storeFailed: (error: unknown) => void;
  readonly storeWorks: () => void;
}

const retryMs = 200;

/**
 * Dying before the database has a verdict sends the effect again, under the same id. A verdict is written under the lease
 * it was reached under: one that comes too late changes nothing.
 */
export function createSettler(options: SettlerOptions): Settler {
  const { store, destination, relayId, lanes, settled, storeFailed, storeWorks } = options;
  let verdicts: Verdict[] = [];
  let writing: Promise<void> | undefined;
  let scheduled = false;
  let givenUp = false;

  async function write(): Promise<void> {
    for (;;) {
      const batch = verdicts;
      const done = lanes.finished();
      if ((batch.length === 0 && done.length === 0) || givenUp) return;
      verdicts = [];
      try {
        const gone = await store.settle(destination, relayId, batch, done);
        lanes.forget(done);
        storeWorks();
        relayTelemetry.settled.publish({ destination, size: batch.length, gone: gone.length });
        settled(batch);
      } catch (error) {
        verdicts = [...batch, ...verdicts];
        storeFailed(error);
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
  }

  function start(): void {
    if (scheduled || writing !== undefined) return;
    scheduled = true;
    // Answers that come in one turn of the event loop are written together.
    setImmediate(() => {
      scheduled = false;
      writing ??= write().finally(() => {
        writing = undefined;
        if (verdicts.length > 0 && !givenUp) start();
      });
    });
  }

  return {
    add(verdict) {
      verdicts.push(verdict);
      start();
    },
    poke: start,
    async flushed(withinMs) {
      const giveUp = setTimeout(() => (givenUp = true), withinMs);
      while (!givenUp && (scheduled || writing !== undefined || verdicts.length > 0)) {
        await (writing ?? new Promise((resolve) => setImmediate(resolve)));
      }
      clearTimeout(giveUp);
    },
  };
}
