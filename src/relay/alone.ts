/** Lets one delivery run alone in its relay, whatever else there is to send. */
export interface Alone {
  /** Whether something runs alone or is about to: nothing else may begin. */
  readonly closed: boolean;
  /** A call that is not alone begins, or ends. */
  began(): void;
  ended(): void;
  /** Called when others may begin again. */
  onOpen(listener: () => void): void;
  /** Runs when nothing else does, one after another. */
  run<T>(work: () => Promise<T>): Promise<T>;
}

export function createAlone(): Alone {
  const listeners: (() => void)[] = [];
  let running = 0;
  let wanting = 0;
  let idle: (() => void) | undefined;
  let last: Promise<unknown> = Promise.resolve();

  async function alone<T>(work: () => Promise<T>): Promise<T> {
    if (running > 0) await new Promise<void>((resolve) => (idle = resolve));
    return work();
  }

  return {
    get closed() {
      return wanting > 0;
    },
    began: () => void running++,
    ended() {
      running--;
      if (running > 0) return;
      idle?.();
      idle = undefined;
    },
    onOpen: (listener) => void listeners.push(listener),
    async run(work) {
      wanting++;
      const turn = last.then(() => alone(work));
      last = turn.catch(() => undefined);
      try {
        return await turn;
      } finally {
        wanting--;
        if (wanting === 0) for (const listener of listeners) listener();
      }
    },
  };
}
