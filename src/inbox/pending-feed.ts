import { receiveMessage } from "../message/create-message.ts";
import { isRejected } from "../message/message.ts";
import type { PendingMessage } from "../store/pending.ts";
import { tellWarning } from "../telemetry/tell-warning.ts";
import { announce } from "./announce.ts";
import { errorText, isStoreAway } from "./classify-error.ts";
import { createGrants } from "./grants.ts";
import type { Handler } from "./handler.ts";
import type { Grant, Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import type { Lanes } from "./lanes.ts";
import type { Processed } from "./outcome.ts";
import { putOff } from "./put-off.ts";

/** Feeds the lanes with pending messages. */
export interface PendingFeed {
  start(): void;
  /** There may be something to take now. */
  wake(): void;
  /** There will be something to take in so many milliseconds. */
  soon(delayMs: number): void;
  /** A pending item's lane is through with it, whatever became of it. */
  done(item: Item): void;
  inHand(): number;
  /** Resolves when nothing of the consumer will be handled without somebody's decision, here or elsewhere. */
  drained(): Promise<void>;
  /** Takes nothing more. */
  stop(): void;
  /** Gives back all lanes; for when nothing is in hand any more. Never rejects. */
  close(): Promise<void>;
}

export interface PendingFeedParts {
  readonly context: LaneContext;
  readonly handler: Handler;
  readonly lanes: Lanes;
  readonly workerId: string;
  readonly leaseMs: number;
  readonly onSettled: (processed: Processed) => void;
}

const shortestIdleMs = 50;
const longestIdleMs = 1_000;
/** Lanes a worker takes at once: a quarter of them, so that others find some. */
const maxLanes = 16;
const maxBytesInHand = 64 * 1024 * 1024;

/**
 * Takes what is due as long as there is room, then looks again after pauses that grow while nothing is found. Waking is
 * only a hint; looking is what nothing is missed by.
 */
export function createPendingFeed(parts: PendingFeedParts): PendingFeed {
  const { context, handler, lanes, workerId, leaseMs, onSettled } = parts;
  const { settings, name, pace } = context;
  const grants = createGrants(context, workerId, leaseMs, maxLanes, wake);
  const timers = new Set<NodeJS.Timeout>();
  let stopped = false;
  let inHand = 0;
  let bytesInHand = 0;
  let hinted = false;
  let goOn: () => void = () => undefined;
  let upTo: string | undefined;
  const drainedWaiters: (() => void)[] = [];
  let feeding: Promise<void> = Promise.resolve();

  function wake(): void {
    hinted = true;
    goOn();
  }

  function submit(message: PendingMessage): void {
    inHand++;
    bytesInHand += message.payload?.byteLength ?? 0;
    const grant = grants.of(message);
    // Taken while the worker began to stop.
    if (stopped) return release(grant, message.payload);
    const item = itemOf(message, grant);
    if (item === undefined) return release(grant, message.payload);
    if (message.sealed === undefined) lanes.submit(item);
    else void waitForKey(item, message.sealed);
  }

  function itemOf(stored: PendingMessage, grant: Grant): Item | undefined {
    const { digest, tenant, producer, id, key, type, time, headers, payload, fingerprint } = stored;
    const message = receiveMessage({ tenant, producer, id, key, type, time, headers, payload });
    if (isRejected(message)) {
      const name = JSON.stringify(id.slice(0, 200));
      tellWarning(`Pending message ${name}: ${message.rejected.text}`);
      grant.hindered = true;
      return undefined;
    }
    const { position, attempts, deferrals } = stored;
    return {
      ...{ message, digest, tenant, producer, id, fingerprint, handler },
      redelivered: stored.suspect,
      pending: { grant, position, attempts, deferrals },
      ...{ conflicts: 0, deferrals: 0, processed: undefined },
      onSettled(processed) {
        announce(name, message, processed);
        onSettled(processed);
      },
    };
  }

  /** A body that does not open waits for its key; nobody else's fault, and never lost. */
  async function waitForKey(item: Item, error: Error): Promise<void> {
    const failure = { error, code: "payload-key-missing", counts: false, permanent: false } as const;
    try {
      await putOff(context, item, { ...failure, afterMs: undefined });
    } catch (cause) {
      tellWarning(`A message could not be put off: ${errorText(cause)}`);
    } finally {
      done(item);
    }
  }

  function done(item: Item): void {
    if (item.pending !== undefined) release(item.pending.grant, item.message.bytes);
  }

  function release(grant: Grant, payload: Uint8Array | null): void {
    inHand--;
    bytesInHand -= payload?.byteLength ?? 0;
    grants.done(grant);
    // Below the mark there is room for more, also in other lanes.
    goOn();
  }

  /** Whether all is done that was stored when it was asked first. What is in hand, here or elsewhere, counts. */
  async function tellDrained(): Promise<void> {
    if (drainedWaiters.length === 0) return;
    upTo ??= await context.store.pending.lastPosition();
    if (await context.store.pending.waits(name.consumer, upTo)) return;
    upTo = undefined;
    for (const resolve of drainedWaiters.splice(0)) resolve();
  }

  /** Resolves when there is a hint, or after the time. */
  async function pause(ms: number): Promise<void> {
    if (hinted || stopped) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      goOn = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    goOn = () => undefined;
  }

  async function feed(): Promise<void> {
    let idleMs = shortestIdleMs;
    while (!stopped) {
      hinted = false;
      const most = settings.lanes * pace.limit(true);
      if (inHand > most / 2 || bytesInHand > maxBytesInHand / 2) {
        await pause(longestIdleMs);
        continue;
      }
      try {
        const { messages, more } = await grants.take(most, maxBytesInHand - bytesInHand);
        for (const message of messages) submit(message);
        await tellDrained();
        if (messages.length > 0 || more) {
          idleMs = shortestIdleMs;
          continue;
        }
      } catch (error) {
        if (isStoreAway(error)) await context.waitForStore?.(error);
        else tellWarning(`Pending messages were not taken: ${errorText(error)}`);
        hinted = false;
      }
      await pause(idleMs);
      idleMs = hinted ? shortestIdleMs : Math.min(longestIdleMs, idleMs * 2);
    }
  }

  return {
    start() {
      feeding = feed();
    },
    wake,
    soon(delayMs) {
      // What is due later than the next look at the latest is found by that.
      if (stopped || delayMs > longestIdleMs) return;
      const timer = setTimeout(() => {
        timers.delete(timer);
        wake();
      }, delayMs + 1);
      timers.add(timer);
    },
    done,
    inHand: () => inHand,
    drained() {
      wake();
      return new Promise((resolve) => drainedWaiters.push(resolve));
    },
    stop() {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
      goOn();
      for (const resolve of drainedWaiters.splice(0)) resolve();
    },
    async close() {
      await feeding;
      try {
        await grants.giveBack();
      } catch (error) {
        // They run out, and count as those of a worker that died: care is taken, nothing is lost.
        tellWarning(`Lanes were not given back: ${errorText(error)}`);
      } finally {
        grants.stop();
      }
    },
  };
}
