/** What a destination may be given now: everything, one effect to try with, or nothing for a time. */
export type Allowance =
  { readonly kind: "all" } | { readonly kind: "one" } | { readonly kind: "none"; readonly forMs: number };

export interface BreakerOptions {
  /** Different effects that fail in a row. */
  readonly pauseAfter: number;
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  readonly random: () => number;
}

/**
 * Gives a destination that fails a pause, so that it is not asked in vain by thousands of effects, and they do not fail
 * for its sake. After the pause one effect tries; its answer opens the way, or begins a longer pause. Times are
 * milliseconds of a clock that only goes forward.
 */
export interface Breaker {
  allowance(now: number): Allowance;
  /** The one effect that tries is on its way. */
  trying(): void;
  /** The one that was to try was not sent after all. */
  notTried(): void;
  /** It answered. True: it was paused until now. */
  answered(): boolean;
  /** It failed. `pauseMs`: it asked for a pause. Resolves with the pause that begins now, if one does. */
  failed(digest: string, now: number, pauseMs?: number): number | undefined;
  /** Whether it has answered lately: what fails now may be at fault itself. */
  healthy(): boolean;
}

export function createBreaker(options: BreakerOptions): Breaker {
  const { pauseAfter, firstPauseMs, longestPauseMs, random } = options;
  const failing = new Set<string>();
  let until: number | undefined;
  let pauses = 0;
  let oneIsTrying = false;

  return {
    allowance(now) {
      if (until === undefined) return { kind: "all" };
      if (now < until) return { kind: "none", forMs: until - now };
      return oneIsTrying ? { kind: "none", forMs: firstPauseMs } : { kind: "one" };
    },
    trying: () => void (oneIsTrying = true),
    notTried: () => void (oneIsTrying = false),
    answered() {
      const wasPaused = until !== undefined;
      failing.clear();
      until = undefined;
      pauses = 0;
      oneIsTrying = false;
      return wasPaused;
    },
    failed(digest, now, pauseMs) {
      failing.add(digest);
      const again = until !== undefined && oneIsTrying;
      oneIsTrying = false;
      if (pauseMs !== undefined) {
        const end = now + pauseMs;
        if (until !== undefined && until >= end) return undefined;
        until = end;
        return pauseMs;
      }
      // Others that were in flight when the pause began say nothing new.
      if (!again && (until !== undefined || failing.size < pauseAfter)) return undefined;
      const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** pauses) * (0.75 + random() / 2);
      pauses++;
      until = now + pause;
      return pause;
    },
    healthy: () => until === undefined && failing.size < pauseAfter,
  };
}
