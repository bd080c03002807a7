import { InboxError } from "../errors.ts";

/** Ends the waiting for handlers whose work cannot be committed any more. */
export interface Interrupt {
  readonly signal: AbortSignal;
  /** The handler's promise, or a rejection as soon as waiting has become pointless. Restarts the handler's time. */
  race<T>(handler: PromiseLike<T>): Promise<T>;
  /** Ends the waiting now. */
  now(error: Error): void;
  close(): void;
}

/**
 * One interrupt serves a whole transaction. The handler itself cannot be stopped: it is told by `signal`, and its tx
 * is sealed.
 */
export function createInterrupt(handlerTimeoutMs: number, stop: AbortSignal | undefined): Interrupt {
  const controller = new AbortController();
  let reject: (error: Error) => void = () => undefined;
  let ended: Error | undefined;

  const now = (error: Error): void => {
    ended ??= error;
    controller.abort(error);
    reject(error);
  };
  const onStop = (): void => now(new InboxError("interrupted", "The process is stopping."));
  let timer: NodeJS.Timeout | undefined;
  if (stop?.aborted) onStop();
  else stop?.addEventListener("abort", onStop, { once: true });

  return {
    signal: controller.signal,
    race<T>(handler: PromiseLike<T>): Promise<T> {
      if (timer === undefined) {
        timer = setTimeout(() => {
          now(new InboxError("handler-timeout", `The handler took longer than ${handlerTimeoutMs} ms.`));
        }, handlerTimeoutMs);
      } else timer.refresh();
      return new Promise<T>((resolve, fail) => {
        reject = fail;
        if (ended !== undefined) fail(ended);
        handler.then(resolve, fail);
      });
    },
    now,
    close() {
      clearTimeout(timer);
      stop?.removeEventListener("abort", onStop);
    },
  };
}
