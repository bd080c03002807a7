import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { hasCode, InboxError } from "../errors.ts";
import { showValue } from "../message/show-value.ts";
import type { ForgetLease } from "../store/outbox-operator.ts";
import type { Store } from "../store/store.ts";
import { wholeNumber } from "../whole-number.ts";

export interface ForgetEffectsOptions {
  /** `postgres(pool)`, over a pool of its own where handlers shall never wait for a connection. */
  readonly store: Store;
  /**
   * How long settled effects stay known, in milliseconds, by the clock of the database. As long as the same effect can be
   * asked for again, by a message that comes again, a replay, or a producer of yours that repeats itself: at least the
   * longest window of the inboxes in these tables. After that the same id is a new effect.
   */
  readonly windowMs: number;
  /** How long the bodies of refused effects stay after the decision, in milliseconds. Default and at most `windowMs`. */
  readonly bodyWindowMs?: number | undefined;
  /** How long one batch may take, in milliseconds: batches grow and shrink to that. Default 50. */
  readonly batchMs?: number | undefined;
  /** How much of the time is spent on batches, in per cent; the rest is paused. Default 10. */
  readonly dutyPercent?: number | undefined;
  /** How long a batch may wait for a lock, in milliseconds, before it gives way. Default 100. */
  readonly lockTimeoutMs?: number | undefined;
  /** How long after its last batch another process may take over, in milliseconds. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** Ends it after the batch that runs. What was forgotten stays so. */
  readonly signal?: AbortSignal | undefined;
}

/** What one sweep over the outbox came to. */
export interface ForgottenEffects {
  /** `busy`: another process is at it. `stopped`: by the signal. `lost`: another process took over. */
  readonly ended: "done" | "busy" | "stopped" | "lost";
  readonly effects: number;
  /** Refusals whose bodies are forgotten, and their history not yet. */
  readonly bodies: number;
  readonly batches: number;
}

const longestMs = 3_155_760_000_000;
const fewestPages = 8;
const mostPages = 4_096;

/**
 * One sweep that forgets effects which are settled and older than the window, with their attempts and decided refusals.
 * What waits, and what waits for a decision, is never forgotten. In batches, which give way to others and pause between;
 * one process at a time. Rejects with `window-too-short` where an inbox keeps its identities for longer.
 */
export async function forgetEffects(options: ForgetEffectsOptions): Promise<ForgottenEffects> {
  const { store, signal } = options;
  const windowMs = wholeNumber("windowMs", options.windowMs, options.windowMs, 1, longestMs);
  const bodyWindowMs = wholeNumber("bodyWindowMs", options.bodyWindowMs, windowMs, 0, windowMs);
  const batchMs = wholeNumber("batchMs", options.batchMs, 50, 1, 60_000);
  const dutyPercent = wholeNumber("dutyPercent", options.dutyPercent, 10, 1, 100);
  const lockTimeoutMs = wholeNumber("lockTimeoutMs", options.lockTimeoutMs, 100, 1, 60_000);
  const leaseMs = wholeNumber("leaseMs", options.leaseMs, 30_000, 100, 3_600_000);
  await checkWindows(store, windowMs);
  const operator = store.outboxOperator;
  const lease = await operator.takeForgetting(randomUUID(), leaseMs);
  if (lease === undefined) return { ended: "busy", effects: 0, bodies: 0, batches: 0 };
  let [effects, bodies, batches] = [0, 0, 0];
  const stopped = (): boolean => signal?.aborted === true;

  /** Tries a batch; resolves with what it forgot, or with why it did not. Pauses behind it. */
  async function timed(
    work: () => Promise<number | "lost">,
  ): Promise<{ got: number | "lost" | "gave way"; took: number }> {
    const start = performance.now();
    const got = await orGiveWay(work);
    const took = performance.now() - start;
    if (typeof got === "number") batches += 1;
    const restMs = Math.min((took * (100 - dutyPercent)) / dutyPercent, leaseMs / 2);
    await pause(restMs, undefined, { signal }).catch((error: unknown) => {
      if (!stopped()) throw error;
    });
    return { got, took };
  }

  async function sweep(held: ForgetLease): Promise<ForgottenEffects["ended"]> {
    for (;;) {
      if (stopped()) return "stopped";
      const { got } = await timed(() => operator.forgetBodies(held, bodyWindowMs));
      if (got === "lost") return "lost";
      if (got === 0) break;
      if (got !== "gave way") bodies += got;
    }
    const last = await operator.effectPages();
    for (let page = 0, pages = fewestPages; page < last;) {
      if (stopped()) return "stopped";
      const batch = { firstPage: page, pages, olderThanMs: windowMs, lockTimeoutMs };
      const { got, took } = await timed(() => operator.forgetEffects(held, batch));
      if (got === "lost") return "lost";
      if (got !== "gave way") {
        effects += got;
        page += pages;
      }
      const factor = got === "gave way" ? 0.5 : Math.min(2, Math.max(0.5, batchMs / Math.max(took, 1)));
      pages = Math.min(mostPages, Math.max(fewestPages, Math.round(pages * factor)));
    }
    return "done";
  }

  const ended = await sweep(lease);
  if (ended !== "lost") await operator.giveForgetting(lease);
  return { ended, effects, bodies, batches };
}

async function orGiveWay(work: () => Promise<number | "lost">): Promise<number | "lost" | "gave way"> {
  try {
    return await work();
  } catch (error) {
    // A lock that was not had in time, or a deadlock that this side lost.
    if (hasCode(error, "55P03") || hasCode(error, "40P01")) return "gave way";
    throw error;
  }
}

/** While a message is known to its inbox, so are the effects that its handler asked for. */
async function checkWindows(store: Store, windowMs: number): Promise<void> {
  const longer = (await store.cleanup.cuts()).find((cut) => cut.windowMs > windowMs);
  if (longer === undefined) return;
  throw new InboxError(
    "window-too-short",
    `The inbox ${showValue(longer.consumer)} keeps identities for ${longer.windowMs} ms; effects must be known at least ` +
      `as long, not ${windowMs} ms.`,
  );
}
