/** How the wait between two attempts grows: times in milliseconds; `jitter` is the part that is left to chance, 0 to 1. */
export interface Delays {
  readonly delayMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
  readonly jitter: number;
}

/** The wait after so many failures in a row, in whole milliseconds. */
export function delayAfter(
  { delayMs, factor, maxDelayMs, jitter }: Delays,
  failures: number,
  random: () => number,
): number {
  const full = Math.min(maxDelayMs, delayMs * factor ** Math.min(Math.max(failures, 1) - 1, 1_000));
  return Math.round(full * (1 - jitter + jitter * random()));
}
