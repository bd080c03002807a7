import type { Delivery, Intake, Source } from "../sources/source.ts";
import { wrappedSource } from "./wrapped-source.ts";

/** What a pace needs of time. */
export interface PaceClock {
  /** Milliseconds of a clock that never goes back. */
  now(): number;
  /** Calls back after so many milliseconds; returns how to forget it. */
  after(ms: number, call: () => void): () => void;
}

// So much of a second is handed over at once: the rest waits for its turn.
const partsOfSecond = 20;

/**
 * The source, handing over no more than so many messages a second: in any span of time no more than the rate allows, and
 * one part of 50 ms. What was not handed over in time is not made up for.
 */
export function paced(source: Source, perSecond: number, clock: PaceClock = processClock): Source {
  const most = Math.max(1, Math.floor(perSecond / partsOfSecond));
  const waiting = new Set<() => void>();
  let nextAt = Number.NEGATIVE_INFINITY;
  let stopped = false;

  /** Takes the next turn, for so many, and waits for it. */
  async function turn(count: number): Promise<void> {
    const at = Math.max(clock.now(), nextAt);
    nextAt = at + (count * 1_000) / perSecond;
    const ms = at - clock.now();
    if (ms <= 0 || stopped) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        forget();
        waiting.delete(done);
        resolve();
      };
      const forget = clock.after(ms, done);
      waiting.add(done);
    });
  }

  async function hand(intake: Intake, deliveries: readonly Delivery[]): Promise<void> {
    for (let at = 0; at < deliveries.length; at += most) {
      const part = deliveries.slice(at, at + most);
      await turn(part.length);
      // What is not handed over stays the source's, unsettled.
      if (stopped) return;
      await intake.deliver(part);
    }
  }

  return wrappedSource(source, {
    start: (intake) => source.start({ ...intake, deliver: (deliveries) => hand(intake, deliveries) }),
    async stop() {
      stopped = true;
      for (const done of waiting) done();
      await source.stop();
    },
  });
}

const processClock: PaceClock = {
  now: () => performance.now(),
  after(ms, call) {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};
