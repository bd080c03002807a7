import { hasCode, InboxError, type ErrorCode } from "../errors.ts";
import { asError, classifyError, errorText, isStoreAway } from "./classify-error.ts";
import { isQuarantine, isRetryIn } from "./handler.ts";
import { orderOf, recordOf, settle, type Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { leave, leaveFollowers } from "./leave.ts";
import { putOff, type Failure } from "./put-off.ts";
import { delayAfter, isUsedUp } from "./retry.ts";

/** The wait after so many failures that are nobody's fault. */
export const uncountedDelay = ({ settings }: LaneContext, failures: number): number =>
  delayAfter(settings.retry.environment, failures, settings.random);

/** Answers items whose failure is not theirs: delivered again, not counted. */
export function failUncounted(context: LaneContext, items: readonly Item[], error: unknown): void {
  for (const item of items) {
    if (item.pending !== undefined) leave(context, item);
    else if (waitsInPlace(context, item, error)) {
      context.deferral?.stash.add(item, orderOf(item) ?? "", uncountedDelay(context, 1));
    } else {
      settle(item, {
        outcome: "failed",
        settle: "retry",
        retryAfterMs: uncountedDelay(context, 1),
        error: asError(error),
      });
    }
  }
}

/** Nothing of a log may overtake a record that is not done. Once the log is another process's, it is that one's care. */
const waitsInPlace = ({ deferral }: LaneContext, item: Item, error: unknown): boolean =>
  deferral !== undefined && recordOf(item) !== undefined && !hasCode(error, "log-lost");

/** Answers an item whose claim somebody else holds, or that met other transactions' locks too often. */
export function busy(
  context: LaneContext,
  item: Item,
  code: "busy" | "transaction-conflict",
  cause?: unknown,
): void {
  if (item.pending !== undefined) return leave(context, item);
  const retryAfterMs = Math.round(context.settings.claimLockTimeoutMs * (1 + context.settings.random()));
  const key = orderOf(item);
  const ordered = context.settings.order !== "skip" || recordOf(item) !== undefined;
  if (context.deferral !== undefined && key !== undefined && ordered) {
    return context.deferral.stash.add(item, key, retryAfterMs);
  }
  const text =
    code === "busy"
      ? "Another transaction holds the claim of this message."
      : `Other transactions were in the way ${item.conflicts} times.`;
  settle(item, {
    outcome: "busy",
    settle: "retry",
    retryAfterMs,
    error: new InboxError(code, text, { cause }),
  });
}

/**
 * The end of an attempt that failed in a transaction of its own, which is rolled back by now. Dying before what is
 * written here commits leaves the message unacknowledged, or in pending, and the attempt uncounted. Resolves with the
 * wait in milliseconds where the item is to run again in its place.
 */
export async function failAlone(
  context: LaneContext,
  item: Item,
  thrown: unknown,
): Promise<number | undefined> {
  if (isQuarantine(thrown)) {
    await quarantineItem(
      context,
      item,
      "handler-rejected",
      new Error(thrown.reason),
      (item.pending?.attempts ?? 0) + 1,
    );
    return undefined;
  }
  const failure = failureOf(context, thrown);
  // Interrupted by a stop: whoever comes next has it anew.
  if (!failure.counts && context.signal?.aborted === true) {
    failUncounted(context, [item], failure.error);
    return undefined;
  }
  try {
    if (failure.permanent) {
      const { attempts } = await recordAttempt(context, item, failure);
      const code = failure.code === "handler-failed" ? "handler-rejected" : failure.code;
      await quarantineItem(context, item, code, failure.error, attempts);
      return undefined;
    }
    if (context.deferral === undefined) return await answerFailed(context, item, failure);
    if (context.settings.order === "block" && item.message.key !== undefined) {
      return await blockLane(context, item, failure);
    }
    const put = await putOff(context, item, failure);
    if (put === "late") await quarantineDoubtful(context, { item, doubt: "late" });
    else if (put !== "done")
      await quarantineItem(context, item, "attempts-exhausted", failure.error, put.exhausted);
    return undefined;
  } catch (error) {
    if (isStoreAway(error) && (await context.waitForStore?.(error))) return failAlone(context, item, thrown);
    failUncounted(context, [item], error);
    return undefined;
  }
}

function failureOf(context: LaneContext, thrown: unknown): Failure {
  if (isRetryIn(thrown)) {
    const error = new InboxError(
      "handler-deferred",
      `The handler asked to run again in ${thrown.afterMs} ms.`,
    );
    return { error, code: error.code, counts: false, permanent: false, afterMs: thrown.afterMs };
  }
  const kind = classifyError(thrown, context.settings.classifyError);
  const code = thrown instanceof InboxError ? thrown.code : "handler-failed";
  const counts = kind === "failure" || kind === "permanent";
  return { error: asError(thrown), code, counts, permanent: kind === "permanent", afterMs: undefined };
}

/** For a caller who sees to the redelivery: counts, and tells when to try again. */
async function answerFailed(context: LaneContext, item: Item, failure: Failure): Promise<undefined> {
  const { settings } = context;
  const answer = { outcome: "failed", settle: "retry", error: failure.error } as const;
  if (!failure.counts) {
    settle(item, { ...answer, retryAfterMs: failure.afterMs ?? uncountedDelay(context, 1) });
    return undefined;
  }
  const { attempts, elapsedMs } = await recordAttempt(context, item, failure);
  if (isUsedUp(settings.retry, attempts, elapsedMs)) {
    await quarantineItem(context, item, "attempts-exhausted", failure.error, attempts);
  } else {
    const retryAfterMs = delayAfter(settings.retry, attempts, settings.random);
    settle(item, { ...answer, retryAfterMs, attempts });
  }
  return undefined;
}

/** The lane waits with the message in hand. */
async function blockLane(context: LaneContext, item: Item, failure: Failure): Promise<number | undefined> {
  const { settings } = context;
  if (!failure.counts) return failure.afterMs ?? uncountedDelay(context, ++item.deferrals);
  item.deferrals = 0;
  const { attempts, elapsedMs } = await recordAttempt(context, item, failure);
  if (!isUsedUp(settings.retry, attempts, elapsedMs))
    return delayAfter(settings.retry, attempts, settings.random);
  await quarantineItem(context, item, "attempts-exhausted", failure.error, attempts);
  return undefined;
}

const recordAttempt = (context: LaneContext, item: Item, { code, error }: Failure) =>
  context.store.recordAttempt(context.name, {
    ...identityOf(item),
    ...{ fingerprint: item.fingerprint, code, error: errorText(error), position: recordOf(item) },
  });

const identityOf = ({ digest, tenant, producer, id }: Item) => ({ digest, tenant, producer, id });

/** Puts a message into quarantine and answers it; if that fails too it is not acknowledged. */
export async function quarantineItem(
  context: LaneContext,
  item: Item,
  code: ErrorCode,
  failure: unknown,
  attempts: number,
): Promise<void> {
  const { message, pending } = item;
  const doubt = code === "payload-conflict" ? "conflict" : code === "late" ? "late" : undefined;
  const blocking =
    context.deferral !== undefined &&
    context.settings.order === "park-key" &&
    message.key !== undefined &&
    doubt === undefined;
  try {
    const outcome = await context.store.quarantine(context.name, {
      identity: { ...identityOf(item), sentAt: item.sentAt },
      rawIdentity: undefined,
      key: message.key,
      type: message.type,
      time: message.time,
      headers: message.headers,
      payload: message.bytes,
      fingerprint: item.fingerprint,
      code,
      error: errorText(failure),
      attempts,
      position: recordOf(item),
      pending: pending && { lease: pending.grant, position: pending.position },
      blocking,
    });
    if (outcome === "gone") return leave(context, item);
    if (blocking) leaveFollowers(context, item);
    if (outcome === "already-applied") return settle(item, { outcome: "duplicate", settle: "ack" });
    settle(item, {
      outcome: outcome === "late" ? "late" : (doubt ?? "rejected"),
      settle: "ack",
      error: new InboxError(code, errorText(failure), { cause: failure }),
      attempts,
    });
  } catch (error) {
    if (isStoreAway(error) && (await context.waitForStore?.(error))) {
      return quarantineItem(context, item, code, failure, attempts);
    }
    failUncounted(context, [item], error);
  }
}

/** A message that must not run until a person has decided, and why. */
export interface Doubtful {
  readonly item: Item;
  readonly doubt: "conflict" | "late";
}

const doubts = {
  conflict: {
    code: "payload-conflict",
    text: "This identity was seen before with another payload. The first stays applied; this one was not run.",
  },
  late: {
    code: "late",
    text:
      "This message is older than what the ledger remembers, so it cannot be proven new: it may have been applied " +
      "and forgotten. It was not run.",
  },
} as const;

/** Keeps a body that is not run, whatever became of its identity, and answers the item. */
export function quarantineDoubtful(context: LaneContext, { item, doubt }: Doubtful): Promise<void> {
  const { code, text } = doubts[doubt];
  return quarantineItem(context, item, code, new InboxError(code, text), 0);
}
