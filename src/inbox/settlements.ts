import { telemetry } from "../telemetry/channels.ts";
import { tellWarning } from "../telemetry/tell-warning.ts";
import type { Delivery, Settlement, Source } from "../sources/source.ts";
import { errorText } from "./classify-error.ts";

/** Collects settlements and tells the source, one batch after another. */
export interface Settlements {
  add(delivery: Delivery, settlement: Settlement): void;
  /** Resolves when the source has been told of everything added so far. */
  flushed(): Promise<void>;
}

export function createSettlements(source: Source): Settlements {
  let queue: (readonly [Delivery, Settlement])[] = [];
  let flushing: Promise<void> | undefined;

  async function flush(): Promise<void> {
    // What is settled in the same turn is told together.
    await Promise.resolve();
    while (queue.length > 0) {
      const settlements = queue;
      queue = [];
      try {
        await source.settle(settlements);
        telemetry.settled.publish({ source: source.name, size: settlements.length });
      } catch (error) {
        // Not told is delivered again, and the claim makes that a no-op.
        tellWarning(`${source.name} could not settle: ${errorText(error)}`);
      }
    }
    flushing = undefined;
  }

  return {
    add(delivery, settlement) {
      queue.push([delivery, settlement]);
      flushing ??= flush();
    },
    flushed: () => flushing ?? Promise.resolve(),
  };
}
