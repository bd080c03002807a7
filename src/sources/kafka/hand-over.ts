import type { Intake } from "../source.ts";
import { sizeOf, type Hand, type Hands } from "./owned-partition.ts";

/** A message that is to be handed over. */
export interface Queued {
  readonly hand: Hand;
  readonly redelivered: boolean;
}

/**
 * Hands messages over in their order, no more at once than the runner wants in hand and its lanes need: one answer of a
 * client may hold more than that, and its records are in the partitions' logs already.
 */
export interface HandOver {
  /**
   * Resolves when so little waits here that more should be read: not only when nothing does, as a client that was paused
   * takes its time to have records again. Never rejects.
   */
  add(list: readonly Queued[]): Promise<void>;
  /** There may be room now. */
  freed(): void;
  /** Drops what waits. */
  stop(): void;
}

// Waiting until a part is free, and not for every single place, keeps what is handed over in batches.
const partToFree = 4;
// What waits while a client that was paused, for being too fast, starts again.
const fewMessages = 500;
const partOfBytes = 4;
// More in hand grow old before they are settled, and only V8's slow collector frees what is old: four times as many took a third
// more memory, and went no faster.
const mostOfLane = 250;

/** `others`: messages that are in no hand that the runner counts, and take room all the same. */
export function createHandOver(
  hands: Hands,
  intake: () => Intake,
  others: { readonly count: number; readonly bytes: number },
): HandOver {
  let queue: Queued[] = [];
  let queuedBytes = 0;
  let running = false;
  let waiting: (() => void)[] = [];
  let stopped = false;
  let wake = (): void => undefined;

  const count = (): number => hands.count + others.count;
  const bytes = (): number => hands.bytes + others.bytes;

  function hasRoom(): boolean {
    const { lanes, maxInHand, maxInHandBytes } = intake().facts;
    const most = Math.min(maxInHand, lanes * mostOfLane);
    const roomFor = (many: number): number => many - Math.floor(many / partToFree);
    return (
      count() === 0 ||
      (hands.count < roomFor(most) && count() < roomFor(maxInHand) && bytes() < maxInHandBytes)
    );
  }

  const fewWait = (): boolean =>
    queue.length === 0 ||
    (queue.length < fewMessages && queuedBytes < intake().facts.maxInHandBytes / partOfBytes);

  /** The next ones that fit; at least one, however large. */
  function next(): readonly Queued[] {
    const { lanes, maxInHand, maxInHandBytes } = intake().facts;
    let places = Math.min(maxInHand - count(), lanes * mostOfLane - hands.count);
    let room = maxInHandBytes - bytes();
    let end = 0;
    while (end < queue.length && (end === 0 || (places > 0 && room > 0))) {
      places--;
      room -= sizeOf((queue[end] as Queued).hand);
      end++;
    }
    const taken = queue.splice(0, end);
    for (const { hand } of taken) queuedBytes -= sizeOf(hand);
    return taken.filter(({ hand }) => hand.partition.state === "open");
  }

  async function run(): Promise<void> {
    running = true;
    while (!stopped) {
      while (!hasRoom() && !stopped) await new Promise<void>((resolve) => (wake = resolve));
      if (stopped) break;
      const room =
        queue.length === 0
          ? undefined
          : intake().deliver(next().map(({ hand, redelivered }) => hands.give(hand, redelivered)));
      if (fewWait()) resolveWaiting();
      if (room === undefined) break;
      await room;
    }
    running = false;
    resolveWaiting();
  }

  function resolveWaiting(): void {
    for (const resolve of waiting) resolve();
    waiting = [];
  }

  return {
    add(list) {
      if (stopped) return Promise.resolve();
      queue.push(...list);
      for (const { hand } of list) queuedBytes += sizeOf(hand);
      if (!running) void run();
      if (fewWait()) return Promise.resolve();
      return new Promise((resolve) => waiting.push(resolve));
    },
    freed() {
      if (stopped || hasRoom()) wake();
    },
    stop() {
      stopped = true;
      queue = [];
      wake();
      resolveWaiting();
    },
  };
}
