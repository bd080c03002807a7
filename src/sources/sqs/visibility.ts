import type { SqsApi } from "./client.ts";
import type { Held } from "./held.ts";
import { chunksOf, inParallel } from "./in-parallel.ts";
import { errorName } from "./sdk-error.ts";

/** SQS leaves a message with one consumer for 12 hours and not a second more, however often it is asked. */
export const longestHoldMs = 12 * 60 * 60 * 1_000;
// Requests take their time, and two clocks may run a little apart in half a day.
const marginMs = 60_000;

/** How much longer a message may be kept invisible, in whole seconds, when it was received at `receivedAt`. */
export const secondsLeft = (receivedAt: number, now: number): number =>
  Math.max(0, Math.floor((receivedAt + longestHoldMs - marginMs - now) / 1_000));

/** `afterMs` in whole seconds, never sooner, but never beyond the 12 hours, for which SQS would refuse it. */
export const retrySeconds = (afterMs: number, receivedAt: number, now: number): number =>
  Math.min(Math.ceil(Math.max(0, afterMs) / 1_000), secondsLeft(receivedAt, now));

export interface VisibilityParts {
  readonly api: SqsApi;
  readonly held: () => Iterable<Held>;
  readonly timeoutMs: number;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly warn: (message: string) => void;
  /** Called with a message whose 12 hours are over. */
  readonly giveBack: (held: Held) => void;
}

/** Keeps messages in hand invisible to others, from their receive on, whether they are handled or still wait. */
export interface Visibility {
  /** Extends those whose time is over by a third or more. Never rejects. */
  extend(): Promise<void>;
}

export function createVisibility(parts: VisibilityParts): Visibility {
  const { api, held, timeoutMs, now, warn, giveBack } = parts;
  let extending: Promise<void> | undefined;

  async function extendDue(): Promise<void> {
    const at = now();
    const due: { message: Held; seconds: number }[] = [];
    for (const message of held()) {
      if (message.lost || message.visibleAt - at > (timeoutMs * 2) / 3) continue;
      const seconds = Math.min(Math.ceil(timeoutMs / 1_000), secondsLeft(message.receivedAt, at));
      if (seconds > 0) due.push({ message, seconds });
      else giveBack(message);
    }
    await inParallel(chunksOf(due, 10), 10, extendBatch);
  }

  async function extendBatch(batch: readonly { message: Held; seconds: number }[]): Promise<void> {
    const handles = batch.map(({ message }) => message.handle);
    const at = now();
    try {
      const answers = await api.changeVisibility(
        batch.map(({ seconds }, i) => ({ handle: handles[i]!, seconds })),
      );
      batch.forEach(({ message, seconds }, i) => {
        // Received again meanwhile: what was said of the old handle says nothing.
        if (message.handle !== handles[i]) return;
        const failure = answers[i];
        if (failure === undefined) message.visibleAt = at + seconds * 1_000;
        else if (failure.final) message.lost = true;
      });
    } catch (error) {
      warn(
        `the visibility of messages in hand could not be extended (${errorName(error)}); others may get them too`,
      );
    }
  }

  return {
    extend: () => (extending ??= extendDue().finally(() => (extending = undefined))),
  };
}
