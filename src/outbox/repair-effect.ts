import { isUint8Array } from "node:util/types";
import { InboxError } from "../errors.ts";
import { checkContent } from "../message/check-message.ts";
import { showValue } from "../message/show-value.ts";
import type { EffectRepair, RefusedEffect } from "../store/outbox-operator.ts";
import type { Body } from "../store/protection.ts";

/** What to send in place of a refused body. What is left out stays as it was. Id, key and type always do. */
export interface EffectRepairInput {
  /** Strings are UTF-8; `null` is an effect without a body. */
  readonly payload?: Uint8Array | string | null | undefined;
  /** All headers, in place of those it had. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The body a repair sends. Throws `decision-needs` for one that cannot be sent, and if nothing is changed. */
export function checkEffectRepair(id: string, before: Body, changes: EffectRepairInput): EffectRepair {
  const payload = changes.payload === undefined ? before.payload : changes.payload;
  const headers = changes.headers ?? before.headers;
  const fault = checkContent({ payload, headers });
  if (fault !== undefined) {
    throw new InboxError("decision-needs", `Entry ${id} cannot be repaired so. ${fault.text}`);
  }
  const bytes = typeof payload === "string" ? Buffer.from(payload) : payload;
  const same = isUint8Array(bytes)
    ? before.payload !== null && Buffer.compare(bytes, before.payload) === 0
    : before.payload === null;
  if (same && JSON.stringify(headers) === JSON.stringify(before.headers)) {
    const text = `The repair of entry ${id} changes nothing. Retry the entry instead.`;
    throw new InboxError("decision-needs", text);
  }
  return { payload: bytes, headers };
}

/** For an entry that is not there. */
export const entryMissing = (id: string): InboxError =>
  new InboxError("entry-missing", `There is no refused effect ${showValue(id)}, or it was forgotten.`);

/** For an entry that somebody has decided on. */
export function alreadyDecided({ id, status, decision }: RefusedEffect): InboxError {
  const who = showValue(decision?.by ?? "", 256);
  const when = decision?.at.toISOString() ?? "";
  return new InboxError("already-decided", `Entry ${id} is ${status}: decided by ${who} at ${when}.`);
}
