import { setTimeout as sleep } from "node:timers/promises";
import { InboxError } from "../../errors.ts";
import type { AmqpChannel, AmqpClient, AmqpMessage } from "./client.ts";
import { errorText, saysNotFound } from "./error-text.ts";
import { createLink, type Link, type Unsettled } from "./link.ts";
import type { RabbitmqSettings } from "./options.ts";
import { within } from "./within.ts";

/** A consumer of one queue that comes back after every loss, each time on a new link. */
export interface Subscription {
  /** Subscribes for the first time; rejects where that fails. */
  start(): Promise<void>;
  /** Asks the broker for the window's present size. */
  resize(): void;
  /** Cancels the consumer: nothing arrives after it resolves. Settling goes on. */
  stop(): Promise<void>;
  /** Waits until the broker has read what was settled, and closes the channel. */
  close(): Promise<void>;
  readonly link: Link | undefined;
  /** How many channels were lost so far. */
  readonly lost: number;
}

export interface SubscriptionParts {
  readonly settings: RabbitmqSettings;
  readonly client: AmqpClient;
  /** The prefetch to ask for. */
  size(): number;
  message(link: Link, message: AmqpMessage): void;
  settled(delivery: Unsettled): void;
  lost(link: Link): void;
  warn(text: string): void;
  /** The queue is not there and does not come back. */
  fail(error: Error): void;
}

interface Open {
  readonly link: Link;
  readonly channel: AmqpChannel;
  readonly since: number;
  consumerTag: string;
}

// A channel that is lost sooner has not come back in earnest.
const settledDownMs = 5_000;

export function createSubscription(parts: SubscriptionParts): Subscription {
  const { settings, client, warn } = parts;
  const { queue, priority, answerTimeoutMs, now } = settings;
  const stopping = new AbortController();
  let open: Open | undefined;
  let work: Promise<void> = Promise.resolve();
  let resizing = false;
  let lost = 0;
  let failures = 0;

  async function subscribe(): Promise<void> {
    const its: { link?: Link } = {};
    const opening = client.open({
      message: (message) => its.link?.alive === true && receive(its.link, message),
      lost: (reason) => its.link !== undefined && lose(its.link, reason),
    });
    const channel = await within(opening, answerTimeoutMs, "opening a channel", (late) => late.close());
    const link = (its.link = createLink(channel, now, parts.settled));
    try {
      const since = now();
      await within(channel.count(queue), answerTimeoutMs, "looking for the queue");
      const consuming = channel.consume(queue, parts.size(), priority);
      const consumerTag = await within(consuming, answerTimeoutMs, "subscribing");
      if (!link.alive) throw new InboxError("source-failed", "The channel was lost while subscribing.");
      if (stopping.signal.aborted) throw new InboxError("interrupted", "Stopped while subscribing.");
      open = { link, channel, since, consumerTag };
    } catch (error) {
      link.lose();
      parts.lost(link);
      await closeQuietly(channel);
      throw error;
    }
  }

  function receive(link: Link, message: AmqpMessage): void {
    try {
      parts.message(link, message);
    } catch (error) {
      lose(link, error);
    }
  }

  function lose(link: Link, reason: unknown): void {
    const last = open;
    link.lose();
    // Still subscribing: whoever waits for an answer is told.
    if (last?.link !== link) return;
    open = undefined;
    parts.lost(link);
    void closeQuietly(last.channel);
    if (stopping.signal.aborted) return;
    lost++;
    warn(lossText(errorText(reason), lost));
    failures = now() - last.since < settledDownMs ? failures + 1 : 0;
    work = comeBack();
  }

  async function comeBack(): Promise<void> {
    let missingSince: number | undefined;
    while (!stopping.signal.aborted) {
      await pause(failures++);
      if (stopping.signal.aborted) return;
      try {
        await subscribe();
        return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        missingSince = saysNotFound(error) ? (missingSince ?? now()) : undefined;
        if (missingSince !== undefined && now() - missingSince >= settings.missingQueueTimeoutMs) {
          const text = `The queue is gone and did not come back within ${settings.missingQueueTimeoutMs} ms: ${errorText(error)}`;
          return parts.fail(new InboxError("source-failed", text, { cause: error }));
        }
        warn(`Cannot subscribe again after loss ${lost}: ${errorText(error)}. Trying on.`);
      }
    }
  }

  async function pause(failed: number): Promise<void> {
    const { reconnectDelayMs, maxReconnectDelayMs, random } = settings;
    const ms = Math.min(maxReconnectDelayMs, reconnectDelayMs * 2 ** Math.min(failed, 30));
    await sleep(ms * (0.5 + random() / 2), undefined, { signal: stopping.signal }).catch(() => undefined);
  }

  const closeQuietly = (channel: AmqpChannel): Promise<void> =>
    within(channel.close(), Math.min(answerTimeoutMs, 5_000), "closing a channel").catch(() => undefined);

  /** A prefetch belongs to the consumer it was given to: the next one takes over from the last, on the same channel. */
  async function replaceConsumer(at: Open): Promise<void> {
    const last = at.consumerTag;
    const next = at.channel.consume(queue, parts.size(), priority);
    at.consumerTag = await within(next, answerTimeoutMs, "changing the prefetch");
    await within(at.channel.cancel(last), answerTimeoutMs, "changing the prefetch");
  }

  async function cancel(): Promise<void> {
    // One that is still coming back, from a broker that does not answer, gives up by itself.
    await within(work, Math.min(answerTimeoutMs, 5_000), "stopping").catch(() => undefined);
    const at = open;
    if (at === undefined) return;
    try {
      await within(at.channel.cancel(at.consumerTag), answerTimeoutMs, "cancelling the consumer");
    } catch {
      // Without an answer nothing that is settled from now on would be read either.
      if (open === at) lose(at.link, undefined);
    }
  }

  let stopped: Promise<void> | undefined;
  let closed: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping.abort();
    return (stopped ??= cancel());
  };
  return {
    start: subscribe,
    resize() {
      const at = open;
      if (resizing || at === undefined || stopping.signal.aborted) return;
      resizing = true;
      work = replaceConsumer(at)
        // A channel that does not answer is lost; a lost one has been seen to.
        .catch((error: unknown) => {
          if (open === at) lose(at.link, error);
        })
        .finally(() => (resizing = false));
    },
    stop,
    close: () =>
      (closed ??= stop().then(async () => {
        if (open !== undefined) await closeQuietly(open.channel);
        open?.link.lose();
      })),
    get link() {
      return open?.link;
    },
    get lost() {
      return lost;
    },
  };
}

function lossText(reason: string, lost: number): string {
  const slow = /acknowledgement on channel \S+ timed out/.test(reason)
    ? " Messages waited here, or their handlers ran, for longer than the broker's consumer_timeout: take them in store-first mode, lower the prefetch, or raise that timeout."
    : "";
  return `The channel was lost (${lost} so far): ${reason}.${slow} What was in hand is delivered again.`;
}
