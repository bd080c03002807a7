import type { Delivery, Settlement } from "./source.ts";
import type { Part, Unsettled } from "./unsettled.ts";

/** Carries out settlements for a source that has no broker behind it: what is not done is handed over again. */
export interface Redelivery {
  settle(delivery: Delivery, settlement: Settlement): void;
  /** Hands nothing over any more. What was not done stays unsettled, and the next run reads it again. */
  stop(): void;
}

/** Longer timers fire at once in Node. In milliseconds. */
export const longestTimerMs = 2 ** 31 - 1;

export function createRedelivery(unsettled: Unsettled, handOver: (delivery: Delivery) => void): Redelivery {
  const timers = new Set<NodeJS.Timeout>();
  let stopped = false;

  function again(part: Part, redelivered: boolean): void {
    if (!stopped) handOver(unsettled.again(part, redelivered));
  }

  return {
    settle(delivery, settlement) {
      const part = unsettled.take(delivery);
      if (part === undefined) return;
      if (settlement.kind === "ack") return unsettled.remove(part);
      if (stopped) return;
      if (settlement.kind === "release") return again(part, delivery.redelivered);
      const timer = setTimeout(
        () => {
          timers.delete(timer);
          again(part, true);
        },
        Math.min(settlement.afterMs, longestTimerMs),
      );
      timers.add(timer);
    },
    stop() {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
}
