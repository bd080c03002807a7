import { exitCodes } from "./exit-codes.ts";

/** Listens for Ctrl-C and its relatives while a run lasts. */
export interface StopSignals {
  /** Whether one came. */
  readonly came: boolean;
  cancel(): void;
}

/** The first SIGINT or SIGTERM calls `stop`; a second one ends the process at once. */
export function onStopSignals(stop: () => void): StopSignals {
  const signals = ["SIGINT", "SIGTERM"] as const;
  let came = false;
  const listener = (): void => {
    if (came) process.exit(exitCodes.interrupted);
    came = true;
    stop();
  };
  for (const signal of signals) process.on(signal, listener);
  return {
    get came() {
      return came;
    },
    cancel() {
      for (const signal of signals) process.off(signal, listener);
    },
  };
}
