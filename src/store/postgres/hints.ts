import { createHash } from "node:crypto";
import type { Hints } from "../pending.ts";
import type { Driver } from "./driver.ts";

/** NOTIFY knows databases, not schemas; and a consumer's name is too long and too free for a channel's. */
export const channelOf = (schemaName: string, consumer: string): string =>
  `inbox_${createHash("sha256").update(`${schemaName}\0${consumer}`).digest("hex").slice(0, 32)}`;

const beatEveryMs = 30_000;
const answerMs = 5_000;
const longestPauseMs = 300_000;

/**
 * Listens on a channel for as long as it is wanted. Only what is heard counts: a notification of its own is sent at the
 * start and whenever it was quiet for 30 s, and if that does not come back within 5 s the connection is given up and
 * another one made after a pause, 1 s at first, 5 minutes at most. So a half-open connection, and a pooler that lends
 * its servers from transaction to transaction, are found out. `onHint` is called at each new beginning too, for what
 * came while nobody listened.
 */
export function keepListening(
  driver: Driver,
  channel: string,
  notify: () => Promise<void>,
  onHint: () => void,
): Hints {
  const listen = driver.listen?.bind(driver);
  if (listen === undefined) return { heard: () => false, close: () => undefined };
  let turn = 0;
  let failures = 0;
  let heard = false;
  let timer: NodeJS.Timeout | undefined;
  let end: () => void = () => undefined;

  function later(ms: number, what: () => void): void {
    clearTimeout(timer);
    timer = setTimeout(what, ms);
    timer.unref();
  }

  async function begin(): Promise<void> {
    const own = turn;
    const lost = (): void => {
      if (own === turn) again();
    };
    const onNotification = (): void => {
      if (own !== turn) return;
      heard = true;
      failures = 0;
      later(beatEveryMs, beat);
      onHint();
    };
    try {
      const ownEnd = await listen!(channel, onNotification, lost);
      if (own !== turn) return ownEnd();
      end = ownEnd;
      onHint();
      beat();
    } catch {
      lost();
    }
  }

  function beat(): void {
    later(answerMs, again);
    notify().catch(() => undefined);
  }

  function again(): void {
    stop();
    later(Math.min(longestPauseMs, 1_000 * 2 ** Math.min(failures++, 10)), () => void begin());
  }

  function stop(): void {
    turn++;
    heard = false;
    clearTimeout(timer);
    end();
    end = () => undefined;
  }

  void begin();
  return { heard: () => heard, close: stop };
}
