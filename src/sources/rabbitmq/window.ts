/** What the window learns from, as it stands now. */
export interface WindowFacts {
  readonly unsettled: number;
  readonly unsettledBytes: number;
  /** Unsettled messages that wait for a retry: they take room and make no progress. */
  readonly held: number;
}

/**
 * How many unsettled messages the broker may send ahead. It begins small and grows while the messages turn out to be
 * small and quickly settled: a full prefetch of large ones would not fit in memory, and slow ones would wait here until
 * the broker's acknowledgement timeout.
 */
export interface Window {
  readonly size: number;
  /** One message arrived. */
  arrived(bytes: number): void;
  /** One message is settled, this long after it arrived. */
  settled(inHandMs: number): void;
  /** Moves the size where it should be another one; returns whether it did. */
  move(facts: WindowFacts): boolean;
}

export interface WindowOptions {
  /** The largest size, without the messages that wait for a retry. */
  readonly most: number;
  readonly mostBytes: number;
  /** Most messages that wait for a retry without taking room from others. */
  readonly mostHeld: number;
  /** How long one message may stay unsettled, in milliseconds. */
  readonly mostInHandMs: number;
}

const firstSize = 32;
const growth = 4;
// The protocol counts it in sixteen bits.
const largest = 65_535;

export function createWindow({ most, mostBytes, mostHeld, mostInHandMs }: WindowOptions): Window {
  let base = Math.min(most, firstSize);
  let extra = 0;
  let arrivals = 0;
  let arrivedBytes = 0;
  let settled = 0;
  let longestMs = 0;

  function change(size: number): boolean {
    const next = Math.max(1, Math.min(most, Math.floor(size)));
    if (next === base) return false;
    base = next;
    arrivals = arrivedBytes = settled = longestMs = 0;
    return true;
  }

  function moveBase({ unsettled, unsettledBytes, held }: WindowFacts): boolean {
    const meanBytes = unsettled === 0 ? 0 : unsettledBytes / unsettled;
    // Half of what would just fit: room for messages that are larger than the mean.
    if (unsettledBytes > mostBytes && base > 1) return change(Math.min(base / 2, mostBytes / meanBytes / 2));
    if (longestMs > mostInHandMs / 2 && base > 1) return change(base / 2);
    if (settled < base || arrivals === 0 || unsettled - held < base / 2) return false;
    const size = Math.min(most, base * growth);
    const fits = (arrivedBytes / arrivals) * size <= mostBytes / 2;
    const soonEnough = longestMs * (size / base) <= mostInHandMs / 4;
    return fits && soonEnough && change(size);
  }

  function moveExtra(held: number): boolean {
    const enough = held >= extra / 8 && held <= extra / 2;
    if (enough || (extra === 0 && held < base / 2) || (held > extra / 2 && extra >= mostHeld)) return false;
    const next = held < base / 4 ? 0 : Math.min(mostHeld, held * growth);
    if (next === extra) return false;
    extra = next;
    return true;
  }

  return {
    get size() {
      return Math.min(largest, base + extra);
    },
    arrived(bytes) {
      arrivals++;
      arrivedBytes += bytes;
    },
    settled(inHandMs) {
      settled++;
      longestMs = Math.max(longestMs, inHandMs);
    },
    move(facts) {
      const moved = moveBase(facts);
      return moveExtra(facts.held) || moved;
    },
  };
}

/** A size that the user chose. */
export const fixedWindow = (size: number): Window => ({
  size,
  arrived: () => undefined,
  settled: () => undefined,
  move: () => false,
});
