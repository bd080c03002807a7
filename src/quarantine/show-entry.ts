import type { Identity } from "../message/message.ts";
import type { QuarantineEntry, RepairedAs } from "../store/quarantine-entry.ts";
import type { RepairRequest } from "../store/quarantine-store.ts";
import { payloadDiff } from "./payload-diff.ts";
import type { Redaction } from "./redact.ts";
import { comparable, showPayload, type ShownPayload } from "./shown-body.ts";

/** An entry for people: what is to be hidden is hidden. */
export interface ShownEntry extends Omit<QuarantineEntry, "payload" | "repair"> {
  readonly payload: ShownPayload;
  readonly repair: ShownRepair | undefined;
}

export interface ShownRepair extends Omit<RepairedAs, "payload"> {
  readonly payload: ShownPayload;
  /** What the repair changed in the payload: a unified diff, or a sentence. */
  readonly diff: string;
}

export function showEntry(redaction: Redaction, entry: QuarantineEntry): ShownEntry {
  const { payload, repair, headers, ...rest } = entry;
  return {
    ...rest,
    headers: redaction.headers(headers),
    payload: showPayload(redaction, payload),
    repair: repair && {
      ...repair,
      payload: showPayload(redaction, repair.payload),
      diff: shownDiff(redaction, payload, repair.payload),
    },
  };
}

/** What a repair would make of an entry, for people. */
export interface RepairPreview extends Identity {
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly payload: ShownPayload;
  /** As of a repair that is made. */
  readonly diff: string;
}

export function showRepair(
  redaction: Redaction,
  entry: QuarantineEntry,
  { identity, key, type, payload }: RepairRequest,
): RepairPreview {
  const diff = shownDiff(redaction, entry.payload, payload);
  return { ...identity, key, type, payload: showPayload(redaction, payload), diff };
}

/** `payloadDiff` of what may be shown: a change in a hidden part is not seen, and is said to be possible. */
export function shownDiff(redaction: Redaction, before: Uint8Array | null, after: Uint8Array | null): string {
  const [old, fresh] = [comparable(redaction, before), comparable(redaction, after)];
  if (old === undefined || fresh === undefined) return "The payloads are hidden.";
  const diff = payloadDiff(old, fresh);
  return redaction.namesParts ? `${diff.trimEnd()}\nHidden parts are not compared.` : diff;
}
