/** Something to wait for that can be woken. Waking while nobody waits is remembered once. */
export interface Wake {
  /** Resolves when woken, or after so many milliseconds. One waits at a time. */
  wait(forMs?: number): Promise<void>;
  wake(): void;
}

export function createWake(): Wake {
  let woken = false;
  let end: (() => void) | undefined;
  return {
    wait(forMs) {
      if (woken) {
        woken = false;
        return Promise.resolve();
      }
      return new Promise((resolve) => {
        const timer = forMs === undefined ? undefined : setTimeout(() => end?.(), Math.min(forMs, 60_000));
        end = () => {
          end = undefined;
          clearTimeout(timer);
          woken = false;
          resolve();
        };
      });
    },
    wake() {
      woken = true;
      end?.();
    },
  };
}
