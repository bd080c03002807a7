/** Messages that wait here, unsettled, until they may be handed over again: the broker has no delay of its own. */
export interface Held<Part> {
  add(part: Part, afterMs: number): void;
  /** Forgets those that `which` names. */
  drop(which: (part: Part) => boolean): Part[];
  readonly count: number;
}

// Longer timers fire at once in Node.
const longestTimerMs = 2 ** 31 - 1;

export function createHeld<Part>(due: (part: Part) => void): Held<Part> {
  const timers = new Map<Part, NodeJS.Timeout>();
  return {
    add(part, afterMs) {
      const fire = (): void => {
        timers.delete(part);
        due(part);
      };
      timers.set(part, setTimeout(fire, Math.min(afterMs, longestTimerMs)));
    },
    drop(which) {
      const dropped: Part[] = [];
      for (const [part, timer] of timers) {
        if (!which(part)) continue;
        clearTimeout(timer);
        timers.delete(part);
        dropped.push(part);
      }
      return dropped;
    },
    get count() {
      return timers.size;
    },
  };
}
