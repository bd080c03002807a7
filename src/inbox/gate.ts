/** Lets work be done side by side, or alone. */
export interface Gate {
  /** Runs the work beside other such work, never beside work that is done alone. */
  together<T>(work: () => Promise<T>): Promise<T>;
  /** Inside `together`: waits for something and lets work that is alone run meanwhile. */
  aside<T>(wait: () => Promise<T>): Promise<T>;
  /** Runs the work when nothing else runs, and lets nothing else begin meanwhile. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

/** In the order of asking: whoever wants to be alone is not overtaken. */
export function createGate(): Gate {
  const queue: { readonly alone: boolean; readonly go: () => void }[] = [];
  let running = 0;
  let closed = false;

  const mayBegin = (alone: boolean): boolean => !closed && (!alone || running === 0);

  function begin(alone: boolean): void {
    running++;
    closed = alone;
  }

  function leave(): void {
    running--;
    closed = false;
    for (let next = queue[0]; next !== undefined && mayBegin(next.alone); next = queue[0]) {
      queue.shift();
      begin(next.alone);
      next.go();
    }
  }

  async function enter(alone: boolean): Promise<void> {
    if (queue.length === 0 && mayBegin(alone)) begin(alone);
    else await new Promise<void>((go) => queue.push({ alone, go }));
  }

  async function through<T>(alone: boolean, work: () => Promise<T>): Promise<T> {
    await enter(alone);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  return {
    together: (work) => through(false, work),
    async aside(wait) {
      leave();
      try {
        return await wait();
      } finally {
        await enter(false);
      }
    },
    alone: (work) => through(true, work),
  };
}
