import type { Intake } from "../source.ts";
import { sizeOf, type Hand, type Hands } from "./owned-partition.ts";

/** A message that is to be handed over. */
export interface Queued {
  readonly hand: Hand;
  readonly redelivered: boolean;
}

/**
 * Hands messages over in their order, no more at once than the runner wants in hand: one answer of a client may hold more
 * than that, and its records are in the partitions' logs already.
 */
export interface HandOver {
  /** Resolves when all that waits here is handed over, or dropped, and there is room for more. Never rejects. */
  add(list: readonly Queued[]): Promise<void>;
  /** There may be room now. */
  freed(): void;
  /** Drops what waits. */
  stop(): void;
}

// Waiting until a part is free, and not for every single place, keeps what is handed over in batches.
const partToFree = 4;

/** `others`: messages that are in no hand that the runner counts, and take room all the same. */
export function createHandOver(
  hands: Hands,
  intake: () => Intake,
  others: { readonly count: number; readonly bytes: number },
): HandOver {
  let queue: Queued[] = [];
  let running: Promise<void> | undefined;
  let stopped = false;
  let wake = (): void => undefined;

  const count = (): number => hands.count + others.count;
  const bytes = (): number => hands.bytes + others.bytes;

  function hasRoom(): boolean {
    const { maxInHand, maxInHandBytes } = intake().facts;
    const enough = maxInHand - Math.floor(maxInHand / partToFree);
    return count() === 0 || (count() < enough && bytes() < maxInHandBytes);
  }

  /** The next ones that fit; at least one, however large. */
  function next(): readonly Queued[] {
    const { maxInHand, maxInHandBytes } = intake().facts;
    let places = maxInHand - count();
    let room = maxInHandBytes - bytes();
    let end = 0;
    while (end < queue.length && (end === 0 || (places > 0 && room > 0))) {
      places--;
      room -= sizeOf((queue[end] as Queued).hand);
      end++;
    }
    return queue.splice(0, end).filter(({ hand }) => hand.partition.state === "open");
  }

  async function run(): Promise<void> {
    while (!stopped) {
      while (!hasRoom() && !stopped) await new Promise<void>((resolve) => (wake = resolve));
      if (queue.length === 0 || stopped) return;
      await intake().deliver(next().map(({ hand, redelivered }) => hands.give(hand, redelivered)));
    }
  }

  return {
    add(list) {
      if (stopped) return Promise.resolve();
      queue.push(...list);
      running ??= run().finally(() => (running = undefined));
      return running;
    },
    freed() {
      if (stopped || hasRoom()) wake();
    },
    stop() {
      stopped = true;
      queue = [];
      wake();
    },
  };
}
