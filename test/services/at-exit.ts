/** Runs `work` once when this process ends, also by a signal that nobody else handles. */
export function atExit(work: () => void): { cancel(): void } {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const cancel = (): void => {
    process.off("exit", onExit);
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onExit = (): void => {
    cancel();
    work();
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    // Somebody else handles the signal: the process ends when they say so, and then "exit" comes.
    if (process.listenerCount(signal) > 1) return;
    onExit();
    process.kill(process.pid, signal);
  };
  process.on("exit", onExit);
  for (const signal of signals) process.on(signal, onSignal);
  return { cancel };
}
