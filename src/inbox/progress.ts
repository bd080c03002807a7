import { tellWarning } from "../telemetry/tell-warning.ts";
import type { Source } from "../sources/source.ts";
import type { ProgressStore } from "../store/progress.ts";
import { errorText } from "./classify-error.ts";

/** What a run counts of its deliveries. */
export interface DeliveryCounts {
  /** Handed over. */
  readonly taken: number;
  /** Settled for good. */
  readonly acknowledged: number;
  /** Which one, counted from 1, is the oldest that has no outcome; `undefined`: all have theirs. */
  readonly oldestInHand: number | undefined;
}

/** Reports how far a source has come, for the clock by which identities are forgotten. */
export interface Progress {
  start(): void;
  /** A delivery goes back to its broker: what was to be settled by now is not. */
  retried(): void;
  /**
   * No say any more. `atItsEnd`: the source came to an end of its own and will bring nothing again by itself, so it shall
   * keep nothing from being forgotten. Never rejects; twice is harmless.
   */
  stop(atItsEnd: boolean): Promise<void>;
}

export interface ProgressParts {
  readonly source: Pick<Source, "name" | "lag">;
  readonly store: ProgressStore;
  readonly consumer: string;
  readonly workerId: string;
  readonly everyMs: number;
  readonly counts: () => DeliveryCounts;
}

/** A moment, and what has to be settled until everything of that moment is. */
interface Mark {
  readonly at: number;
  readonly taken: number;
  readonly acknowledged: number;
}

// An hour behind at the default; then the next marks come when the first are reached.
const maxMarks = 240;
/** Reports without an advance after which a source that tells its lag stands still, as the database counts them. */
const patience = 4;

/**
 * A source has come as far as the last moment of which all that waited then is settled: as many deliveries as waited are
 * acknowledged since, and none that was in hand then is so still. One that cannot tell its lag: when all that it had
 * handed over then is settled, and not before it has had some time to begin.
 */
export function createProgress({
  source,
  store,
  consumer,
  workerId,
  everyMs,
  counts,
}: ProgressParts): Progress {
  const startedAt = performance.now();
  let marks: Mark[] = [];
  let reachedAt: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  let reporting: Promise<void> | undefined;
  let reported = false;

  async function lookAround(): Promise<"reached" | "unknown" | "no say"> {
    const at = performance.now();
    const before = counts();
    if (source.lag === undefined) {
      if (at - startedAt >= patience * everyMs) note({ at, taken: before.taken, acknowledged: 0 });
      return "reached";
    }
    let lag: number | undefined;
    try {
      lag = await source.lag();
    } catch {
      return "unknown";
    }
    if (lag === undefined) return "no say";
    // What was acknowledged while the broker was asked may be in its answer: counted again, it only makes the mark later.
    const waits = lag === 0 ? 0 : counts().acknowledged + lag;
    note({ at, taken: before.taken, acknowledged: waits });
    if (lag === 0 && counts().oldestInHand === undefined) marks = [{ at, taken: 0, acknowledged: 0 }];
    return "reached";
  }

  function note(mark: Mark): void {
    if (marks.length < maxMarks) marks.push(mark);
  }

  function advance(): void {
    const { acknowledged, oldestInHand } = counts();
    const done = (mark: Mark): boolean =>
      acknowledged >= mark.acknowledged && (oldestInHand === undefined || oldestInHand > mark.taken);
    for (let first = marks[0]; first !== undefined && done(first); first = marks[0]) {
      reachedAt = first.at;
      marks.shift();
    }
  }

  async function report(): Promise<void> {
    const seen = await lookAround();
    if (seen === "no say") {
      if (reported) await store.leave(consumer, source.name, workerId);
      reported = false;
      marks = [];
      reachedAt = undefined;
      return;
    }
    advance();
    const behindMs = reachedAt === undefined ? undefined : Math.max(0, performance.now() - reachedAt);
    reported = true;
    await store.report(consumer, source.name, workerId, { behindMs, everyMs });
  }

  const tick = (): void => {
    // A broker or database that is slow to answer is asked once.
    reporting ??= report()
      .catch((error: unknown) => {
        // Without a report the clock stands still and less is forgotten: nothing is lost.
        tellWarning(`The progress of ${source.name} was not reported: ${errorText(error)}`);
      })
      .finally(() => (reporting = undefined));
  };

  return {
    start() {
      timer = setInterval(tick, everyMs);
      timer.unref();
    },
    retried: () => void (marks = []),
    async stop(atItsEnd) {
      clearInterval(timer);
      await reporting;
      if (!reported) return;
      reported = false;
      // What stays behind has no say either, four reports later.
      await (
        atItsEnd ? store.retire(consumer, source.name) : store.leave(consumer, source.name, workerId)
      ).catch(() => undefined);
    },
  };
}
