import { setTimeout as sleep } from "node:timers/promises";
import { errorName } from "./sdk-error.ts";
import type { RawMessage } from "./raw-message.ts";

export interface ReceiverParts {
  /** Asks for up to `count` messages and waits for the first. */
  readonly receive: (count: number, signal: AbortSignal) => Promise<readonly RawMessage[]>;
  /** Takes what came; resolves when there is room for more. */
  readonly take: (messages: readonly RawMessage[]) => Promise<void>;
  /** How many more messages may be in hand. */
  readonly room: () => number;
  /** Most requests at once. */
  readonly receivers: number;
  /** Told of each failed request, with how many failed in a row and for how long. */
  readonly failed: (name: string, times: number, forMs: number) => void;
  readonly now: () => number;
  readonly random: () => number;
}

/** Asks for messages as long as there is room. */
export interface Receiver {
  /** Starts requests where there is room. To be called when messages have left. */
  fill(): void;
  /** Resolves when no request is under way: answers on their way are taken, waiting requests are ended. */
  stop(): Promise<void>;
}

const maxMessages = 10;
const firstPauseMs = 100;
const longestPauseMs = 10_000;
// What SQS has handed out while a request was being ended is nobody's until its visibility timeout is over.
const stopGraceMs = 300;

/**
 * One long poll while there is little to do; a full answer starts another beside it, up to `receivers`, and an empty one
 * ends all but one: a quiet queue costs three requests a minute.
 */
export function createReceiver(parts: ReceiverParts): Receiver {
  const { receive, take, room, receivers, failed, now, random } = parts;
  const aborting = new AbortController();
  const stopping = new AbortController();
  const asking = new Set<Promise<unknown>>();
  let wanted = 1;
  let busy = 0;
  let asked = 0;
  let failures = 0;
  let failingSince = 0;

  function fill(): void {
    while (!stopping.signal.aborted && busy < wanted) {
      const count = Math.min(maxMessages, room() - asked);
      if (count < 1) return;
      busy++;
      void poll(count).finally(() => {
        busy--;
        fill();
      });
    }
  }

  async function poll(count: number): Promise<void> {
    asked += count;
    let taken: Promise<void> = Promise.resolve();
    const request = receive(count, aborting.signal)
      .then((messages) => {
        failures = 0;
        wanted = next(messages.length, count);
        taken = take(messages);
      })
      .finally(() => (asked -= count));
    asking.add(request);
    try {
      await request;
    } catch (error) {
      if (!stopping.signal.aborted) await afterFailure(errorName(error));
    } finally {
      asking.delete(request);
    }
    await taken;
  }

  function next(received: number, count: number): number {
    if (received === 0) return 1;
    return received === count ? Math.min(wanted + 1, receivers) : Math.max(1, wanted - 1);
  }

  async function afterFailure(name: string): Promise<void> {
    if (failures === 0) failingSince = now();
    failures++;
    wanted = 1;
    failed(name, failures, now() - failingSince);
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures - 1, 20));
    const options = { signal: stopping.signal };
    await sleep(pauseMs * (0.5 + random() / 2), undefined, options).catch(() => undefined);
  }

  return {
    fill,
    async stop() {
      stopping.abort();
      const ended = Promise.allSettled(asking);
      if ((await Promise.race([ended, sleep(stopGraceMs, "late", { ref: false })])) === "late")
        aborting.abort();
      await ended;
    },
  };
}
