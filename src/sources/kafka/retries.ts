import { longestTimerMs } from "../redelivery.ts";
import { sizeOf, type Hand, type OwnedPartition } from "./owned-partition.ts";

/** Messages that wait in memory to be handed over again; their offsets stay uncommitted meanwhile. */
export interface Retries {
  add(hand: Hand, afterMs: number): void;
  /** Forgets those of a partition that is given back: the next owner reads them again. */
  forget(partition: OwnedPartition): void;
  /** Forgets all. */
  stop(): void;
  readonly count: number;
  readonly bytes: number;
}

/** `again` is called with what is due; `freed` whenever there is more room. */
export function createRetries(again: (hand: Hand) => void, freed: () => void): Retries {
  const waiting = new Map<Hand, NodeJS.Timeout>();
  let bytes = 0;

  function remove(hand: Hand): void {
    clearTimeout(waiting.get(hand));
    if (waiting.delete(hand)) bytes -= sizeOf(hand);
  }

  return {
    add(hand, afterMs) {
      const timer = setTimeout(
        () => {
          remove(hand);
          again(hand);
          freed();
        },
        Math.min(afterMs, longestTimerMs),
      );
      waiting.set(hand, timer);
      bytes += sizeOf(hand);
    },
    forget(partition) {
      for (const hand of [...waiting.keys()]) if (hand.partition === partition) remove(hand);
      freed();
    },
    stop() {
      for (const hand of [...waiting.keys()]) remove(hand);
      freed();
    },
    get count() {
      return waiting.size;
    },
    get bytes() {
      return bytes;
    },
  };
}
