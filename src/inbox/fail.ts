import { InboxError, type ErrorCode } from "../errors.ts";
import { asError, classifyError, errorText } from "./classify-error.ts";
import { isQuarantine, isRetryIn } from "./handler.ts";
import { settle, type Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";

/** Waits for a failed attempt: doubled each time, capped, and spread over the upper half so that a herd comes apart. */
export function retryDelay(context: LaneContext, attempts: number): number {
  const { retryDelayMs, maxRetryDelayMs, random } = context.settings;
  const full = Math.min(maxRetryDelayMs, retryDelayMs * 2 ** Math.min(attempts - 1, 40));
  return Math.round(full / 2 + (full / 2) * random());
}

/** Answers items whose failure is not theirs: delivered again, not counted. */
export function failUncounted(context: LaneContext, items: readonly Item[], error: unknown): void {
  for (const item of items) {
    settle(item, {
      outcome: "failed",
      settle: "retry",
      retryAfterMs: retryDelay(context, 1),
      error: asError(error),
    });
  }
}

/** Answers an item whose claim somebody else holds, or that met other transactions' locks too often. */
export function busy(
  context: LaneContext,
  item: Item,
  code: "busy" | "transaction-conflict",
  cause?: unknown,
): void {
  const text =
    code === "busy"
      ? "Another transaction holds the claim of this message."
      : `Other transactions were in the way ${item.conflicts} times.`;
  const retryAfterMs = Math.round(context.settings.claimLockTimeoutMs * (1 + context.settings.random()));
  settle(item, {
    outcome: "busy",
    settle: "retry",
    retryAfterMs,
    error: new InboxError(code, text, { cause }),
  });
}

/**
 * The end of an attempt that failed in a transaction of its own, which is rolled back by now. Counts it, or puts the
 * message into quarantine. Dying before either commits leaves the message unacknowledged and the attempt uncounted.
 */
export async function failAlone(context: LaneContext, item: Item, failure: unknown): Promise<void> {
  if (isRetryIn(failure)) {
    const error = new InboxError(
      "handler-deferred",
      `The handler asked to run again in ${failure.afterMs} ms.`,
    );
    return settle(item, { outcome: "failed", settle: "retry", retryAfterMs: failure.afterMs, error });
  }
  if (isQuarantine(failure)) {
    return quarantineItem(context, item, "handler-rejected", new Error(failure.reason), 1);
  }
  const kind = classifyError(failure, context.settings.classifyError);
  if (kind === "environment" || kind === "conflict") return failUncounted(context, [item], failure);
  try {
    const code = codeFor(failure);
    const { attempts } = await context.store.recordAttempt(context.name, {
      ...claimOf(item),
      code,
      error: errorText(failure),
    });
    if (kind === "permanent") {
      const permanentCode = code === "handler-failed" ? "handler-rejected" : code;
      return await quarantineItem(context, item, permanentCode, failure, attempts);
    }
    if (attempts >= context.settings.maxAttempts) {
      return await quarantineItem(context, item, "attempts-exhausted", failure, attempts);
    }
    settle(item, {
      outcome: "failed",
      settle: "retry",
      retryAfterMs: retryDelay(context, attempts),
      error: asError(failure),
      attempts,
    });
  } catch (error) {
    failUncounted(context, [item], error);
  }
}

/** Puts a message into quarantine and answers it; if that fails too it is not acknowledged. */
export async function quarantineItem(
  context: LaneContext,
  item: Item,
  code: ErrorCode,
  failure: unknown,
  attempts: number,
): Promise<void> {
  const { message } = item;
  try {
    const outcome = await context.store.quarantine(context.name, {
      identity: { digest: item.digest, tenant: item.tenant, producer: item.producer, id: item.id },
      rawIdentity: undefined,
      key: message.key,
      type: message.type,
      headers: message.headers,
      payload: message.bytes,
      fingerprint: item.fingerprint,
      code,
      error: errorText(failure),
      attempts,
    });
    if (outcome === "already-applied") return settle(item, { outcome: "duplicate", settle: "ack" });
    settle(item, {
      outcome: code === "payload-conflict" ? "conflict" : "rejected",
      settle: "ack",
      error: new InboxError(code, errorText(failure), { cause: failure }),
      attempts,
    });
  } catch (error) {
    failUncounted(context, [item], error);
  }
}

/** Same identity, other payload: the second body is kept beside the first. */
export function quarantineConflict(context: LaneContext, item: Item): Promise<void> {
  const text =
    "This identity was seen before with another payload. The first stays applied; this one was not run.";
  return quarantineItem(context, item, "payload-conflict", new InboxError("payload-conflict", text), 0);
}

const claimOf = ({ digest, tenant, producer, id, fingerprint }: Item) => ({
  digest,
  tenant,
  producer,
  id,
  fingerprint,
});

const codeFor = (failure: unknown): ErrorCode =>
  failure instanceof InboxError ? failure.code : "handler-failed";
