import type { Redaction } from "../quarantine/redact.ts";
import { shownDiff } from "../quarantine/show-entry.ts";
import { showPayload, type ShownPayload } from "../quarantine/shown-body.ts";
import type { EffectRepair, RefusedEffect, StoredRefusedEffect } from "../store/outbox-operator.ts";
import type { Body } from "../store/protection.ts";

/** A body for people: what is to be hidden is hidden. */
export interface ShownBody {
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: ShownPayload;
}

/** A refused effect for people. */
export interface ShownRefusedEffect extends RefusedEffect {
  readonly time: Date | undefined;
  /** The name of the key its body is sealed with; `undefined` where it is stored as it came. */
  readonly keyId: string | undefined;
  /** What was refused; `undefined`: it was sent since, or forgotten. */
  readonly body: ShownBody | undefined;
  /** What a repair gave back to be sent. */
  readonly repair: (ShownBody & { readonly diff: string }) | undefined;
}

/** What a repair would send, for people. */
export interface EffectRepairPreview extends ShownBody {
  /** What it changes in the payload: a unified diff, or a sentence. */
  readonly diff: string;
}

export function showRefusedEffect(
  redaction: Redaction,
  { body: stored, repaired: _, digest: __, ...entry }: StoredRefusedEffect,
  body: Body | undefined,
  repaired: Body | undefined,
): ShownRefusedEffect {
  return {
    ...entry,
    keyId: stored?.keyId ?? undefined,
    body: body && showBody(redaction, body),
    repair: repaired && {
      ...showBody(redaction, repaired),
      diff: body === undefined ? "" : shownDiff(redaction, body.payload, repaired.payload),
    },
  };
}

export const showEffectRepair = (
  redaction: Redaction,
  before: Body,
  after: EffectRepair,
): EffectRepairPreview => ({
  ...showBody(redaction, after),
  diff: shownDiff(redaction, before.payload, after.payload),
});

const showBody = (redaction: Redaction, { headers, payload }: Body): ShownBody => ({
  headers: redaction.headers(headers),
  payload: showPayload(redaction, payload),
});
