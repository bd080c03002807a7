/**
 * Keeps changes of the assignment apart from polls: what one poll gives then belongs to one assignment. A batch of an old
 * assignment that came after the new one had begun would move the position past records that were not read.
 */
export interface Turns {
  /** Polls, and has what it gave taken before anything else may happen. */
  poll<Batch, Taken>(start: () => Promise<Batch>, take: (batch: Batch) => Taken): Promise<Taken>;
  /** Does something while no poll is under way, at once if there is none. Rejects as `action` throws. */
  between(action: () => void): Promise<void>;
}

export function createTurns(): Turns {
  const waiting: (() => void)[] = [];
  let polling = false;
  return {
    async poll(start, take) {
      polling = true;
      try {
        return take(await start());
      } finally {
        polling = false;
        for (const run of waiting.splice(0)) run();
      }
    },
    between: (action) =>
      new Promise((resolve, reject) => {
        const run = (): void => {
          try {
            action();
            resolve();
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
          }
        };
        if (polling) waiting.push(run);
        else run();
      }),
  };
}
