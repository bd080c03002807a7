import { tellWarning } from "../telemetry/tell-warning.ts";
import { errorText } from "./classify-error.ts";

/** How something that works in the background ends. */
export interface Ending<T> {
  /** The promise of its end; whoever asks for it is the one who hears of an error. */
  ask(): Promise<T>;
}

/** An error that nobody has asked for is told as a warning: a process whose consumer has ended must not look well. */
export function createEnding<T>(what: string, end: Promise<T>): Ending<T> {
  let asked = false;
  end.catch((error: unknown) => {
    // Whoever starts it and asks right after that has asked in time.
    setImmediate(() => {
      if (!asked) tellWarning(`${what} has ended, and nobody awaits its "finished": ${errorText(error)}`);
    });
  });
  return {
    ask() {
      asked = true;
      return end;
    },
  };
}
