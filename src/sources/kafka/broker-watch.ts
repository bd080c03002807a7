import { hasCode, InboxError } from "../../errors.ts";

/**
 * Whether any broker answers, and has the topics. A client reconnects for ever by itself, and goes on without a topic that is
 * deleted, which looks like health while nothing is consumed: after a while the source ends instead, and whoever started it
 * finds out.
 */
export interface BrokerWatch {
  /** A broker answered. */
  alive(): void;
  stop(): void;
}

export interface BrokerWatchOptions {
  readonly timeoutMs: number;
  /** Asks a broker about the topics. Rejects with `source-failed` where it says that one is not there. */
  readonly ask: () => Promise<void>;
  readonly warn: (message: string) => void;
  readonly failed: (error: Error) => void;
}

// A broker that has just started may not have heard of each topic yet.
const leastMissingMs = 5_000;

export function createBrokerWatch({ timeoutMs, ask, warn, failed }: BrokerWatchOptions): BrokerWatch {
  const everyMs = Math.max(250, Math.min(10_000, timeoutMs / 4));
  let aliveAt = performance.now();
  let asking = false;
  let why = "";
  let missingSince: number | undefined;
  let stopped = false;

  const alive = (): void => {
    aliveAt = performance.now();
    why = "";
  };

  async function look(): Promise<void> {
    const silentMs = performance.now() - aliveAt;
    if (silentMs >= timeoutMs) {
      clearInterval(timer);
      const text = `No broker has answered for ${Math.round(silentMs)} ms (brokerTimeoutMs: ${timeoutMs})${why}.`;
      return failed(new InboxError("source-failed", text));
    }
    if (asking) return;
    asking = true;
    try {
      await ask();
      missingSince = undefined;
      alive();
    } catch (error) {
      if (hasCode(error, "source-failed")) {
        alive();
        return missing(error as Error);
      }
      const text = error instanceof Error ? error.message : String(error);
      why = `: ${text}`;
      if (!stopped) warn(`No broker answers: ${text}`);
    } finally {
      asking = false;
    }
  }

  function missing(error: Error): void {
    if (stopped) return;
    missingSince ??= performance.now();
    if (performance.now() - missingSince < Math.max(leastMissingMs, 2 * everyMs)) return warn(error.message);
    clearInterval(timer);
    failed(error);
  }

  const timer = setInterval(() => void look(), everyMs);
  timer.unref();
  return {
    alive,
    stop() {
      stopped = true;
      clearInterval(timer);
    },
  };
}
