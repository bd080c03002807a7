import type { ErrorCode } from "../errors.ts";
import type { StoredMessage } from "../store/pending.ts";
import { errorText } from "./classify-error.ts";
import { recordOf, settle, type Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { leave, leaveFollowers } from "./leave.ts";
import { delayAfter, isUsedUp } from "./retry.ts";

/** What a failed attempt says. */
export interface Failure {
  readonly error: Error;
  readonly code: ErrorCode;
  /** Whether it counts as an attempt. */
  readonly counts: boolean;
  readonly permanent: boolean;
  /** The wait that the handler asked for, in milliseconds. */
  readonly afterMs: number | undefined;
}

/** An item with its body, as the store keeps it. */
export const storedMessage = ({ message, ...item }: Item): StoredMessage => ({
  ...{ digest: item.digest, tenant: item.tenant, producer: item.producer, id: item.id },
  ...{
    fingerprint: item.fingerprint,
    sentAt: item.sentAt,
    key: message.key,
    type: message.type,
    time: message.time,
  },
  ...{ headers: message.headers, payload: message.bytes },
});

/**
 * Moves a failed message to pending, or schedules it anew there: the source may forget it. Rejects where the store
 * does. `exhausted`: there shall be no further attempt after so many, nothing is settled. `late`: what is forgotten has
 * passed it while it ran, nothing is settled.
 */
export async function putOff(
  context: LaneContext,
  item: Item,
  { error, code, counts, afterMs }: Failure,
): Promise<{ readonly exhausted: number } | "late" | "done"> {
  const { retry, order, random } = context.settings;
  const { key } = item.message;
  const { pending } = item;
  const park = order === "park-key" && key !== undefined;
  const deferrals = pending?.deferrals ?? 0;
  const answer = await context.store.pending.putOff(context.name, {
    message: storedMessage(item),
    position: recordOf(item),
    pending: pending && { lease: pending.grant, deferrals },
    ...{ code, error: errorText(error), counts, park },
    delayAfter(attempts, elapsedMs) {
      if (!counts) return afterMs ?? delayAfter(retry.environment, deferrals + 1, random);
      return isUsedUp(retry, attempts, elapsedMs) ? undefined : delayAfter(retry, attempts, random);
    },
  });
  if (answer.kind === "late") return "late";
  if (park || answer.kind === "gone") leaveFollowers(context, item);
  switch (answer.kind) {
    case "exhausted":
      return { exhausted: answer.attempts };
    case "stored":
      context.deferral?.soon(answer.delayMs);
      settle(item, {
        ...{ outcome: "stored", settle: "ack", waitsFor: "attempt", error },
        ...(counts ? { attempts: answer.attempts } : {}),
      });
      break;
    case "known":
      settle(item, { outcome: "stored", settle: "ack" });
      break;
    case "duplicate":
      settle(item, { outcome: "duplicate", settle: "ack" });
      break;
    case "gone":
      leave(context, item);
      break;
  }
  return "done";
}
