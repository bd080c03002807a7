import { InboxError } from "../../errors.ts";

/**
 * Whether any broker answers. A client reconnects for ever by itself, which looks like health while nothing is consumed:
 * with no answer for too long the source ends instead, and whoever started it finds out.
 */
export interface BrokerWatch {
  /** A broker answered. */
  alive(): void;
  stop(): void;
}

export interface BrokerWatchOptions {
  readonly timeoutMs: number;
  /** Asks a broker something small. */
  readonly ask: () => Promise<void>;
  readonly warn: (message: string) => void;
  readonly failed: (error: Error) => void;
}

export function createBrokerWatch({ timeoutMs, ask, warn, failed }: BrokerWatchOptions): BrokerWatch {
  const everyMs = Math.max(250, Math.min(10_000, timeoutMs / 4));
  let aliveAt = performance.now();
  let asking = false;
  let why = "";
  let stopped = false;

  const alive = (): void => {
    aliveAt = performance.now();
    why = "";
  };

  async function look(): Promise<void> {
    const silentMs = performance.now() - aliveAt;
    if (silentMs < everyMs) return;
    if (silentMs >= timeoutMs) {
      clearInterval(timer);
      const text = `No broker has answered for ${Math.round(silentMs)} ms (brokerTimeoutMs: ${timeoutMs})${why}.`;
      return failed(new InboxError("source-failed", text));
    }
    if (asking) return;
    asking = true;
    try {
      await ask();
      alive();
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      why = `: ${text}`;
      if (!stopped) warn(`No broker answers: ${text}`);
    } finally {
      asking = false;
    }
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
