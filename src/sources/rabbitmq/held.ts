import { longestTimerMs } from "../redelivery.ts";

/** Messages that wait here, unsettled, until they may be handed over again: the broker has no delay of its own. */
export interface HeldEntries<Entry> {
  add(entry: Entry, afterMs: number): void;
  /** Forgets those that `which` names. */
  drop(which: (entry: Entry) => boolean): Entry[];
  readonly count: number;
}

export function createHeld<Entry>(due: (entry: Entry) => void): HeldEntries<Entry> {
  const timers = new Map<Entry, NodeJS.Timeout>();
  return {
    add(entry, afterMs) {
      const fire = (): void => {
        timers.delete(entry);
        due(entry);
      };
      timers.set(entry, setTimeout(fire, Math.min(afterMs, longestTimerMs)));
    },
    drop(which) {
      const dropped: Entry[] = [];
      for (const [entry, timer] of timers) {
        if (!which(entry)) continue;
        clearTimeout(timer);
        timers.delete(entry);
        dropped.push(entry);
      }
      return dropped;
    },
    get count() {
      return timers.size;
    },
  };
}
