import { storeUnavailable, textOf } from "./pending.ts";

// Longer timers fire at once in Node.
const longestTimerMs = 2 ** 31 - 1;

/**
 * Waits for a connection at most `timeoutMs`. Throws `store-unavailable` on a timeout and on the driver's own errors;
 * a connection that comes after the timeout goes to `giveBack`.
 */
export async function connectInTime<C>(
  connect: () => PromiseLike<C>,
  giveBack: (late: C) => void,
  timeoutMs: number,
): Promise<C> {
  return new Promise<C>((resolve, reject) => {
    let timedOut = false;
    const timer = setTimeout(
      () => {
        timedOut = true;
        reject(storeUnavailable(`none was free within ${timeoutMs} ms.`));
      },
      Math.min(Math.max(timeoutMs, 0), longestTimerMs),
    );
    const failed = (error: unknown) => {
      clearTimeout(timer);
      reject(storeUnavailable(textOf(error), error));
    };
    try {
      connect().then((connection) => {
        clearTimeout(timer);
        if (timedOut) giveBack(connection);
        else resolve(connection);
      }, failed);
    } catch (error) {
      failed(error);
    }
  });
}
