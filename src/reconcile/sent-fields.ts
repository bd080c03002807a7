import { InboxError } from "../errors.ts";
import { checkIdentity } from "../message/check-message.ts";
import { computeFingerprint, type Fingerprint, type FingerprintMode } from "../message/fingerprint.ts";
import { parseFingerprintMode } from "../message/fingerprint-mode.ts";
import { parseRfc3339 } from "../message/rfc3339.ts";
import { showValue } from "../message/show-value.ts";
import type { SentDefaults, SentMessage } from "./sent.ts";

/** A line or a row, of which nothing has been checked. Null and missing are the same. */
export interface SentFields {
  readonly id?: unknown;
  readonly producer?: unknown;
  readonly tenant?: unknown;
  readonly time?: unknown;
  readonly fingerprint?: unknown;
  readonly fingerprintMode?: unknown;
  readonly payload?: Uint8Array | string | undefined;
}

const sha256 = /^([0-9a-f]{64})?$/;
const given = (value: unknown): unknown => (value === null ? undefined : value);

/** The message of a line or row, or in one sentence why it is none. Nothing is trimmed, normalised or made up. */
export function sentMessage(
  fields: SentFields,
  defaults: SentDefaults,
  payloadMode: FingerprintMode,
): SentMessage | string {
  const id = given(fields.id);
  const producer = given(fields.producer) ?? defaults.producer;
  const tenant = given(fields.tenant) ?? defaults.tenant ?? "";
  // A number beyond 2^53 has lost its last digits by now, and 1.0 is no 1.
  if (typeof id === "number")
    return `The id is the number ${id}: write it in quotes, as the consumer has it.`;
  const fault = checkIdentity({ id, producer, tenant });
  if (fault !== undefined) return fault.text;
  const time = given(fields.time);
  const parsed = typeof time === "string" ? parseRfc3339(time) : undefined;
  if (time !== undefined && parsed === undefined) {
    return `The time ${showValue(time)} is no RFC 3339 time with a zone, such as 2026-11-30T07:31:19Z.`;
  }
  const fingerprint = fingerprintOf(fields, payloadMode);
  if (typeof fingerprint === "string") return fingerprint;
  return {
    tenant: tenant as string,
    producer: producer as string,
    id: id as string,
    fingerprint,
    time: parsed?.getTime(),
  };
}

function fingerprintOf(fields: SentFields, payloadMode: FingerprintMode): Fingerprint | string | undefined {
  const digest = given(fields.fingerprint);
  if (digest === undefined) {
    return fields.payload === undefined ? undefined : computeFingerprint(payloadMode, fields.payload);
  }
  if (typeof digest !== "string" || !sha256.test(digest)) {
    return `The fingerprint ${showValue(digest)} is no SHA-256 in 64 lower-case hex digits (or "" for a tombstone).`;
  }
  const mode = given(fields.fingerprintMode) ?? "b";
  try {
    if (typeof mode !== "string") throw new Error("no text");
    parseFingerprintMode(mode);
  } catch {
    return `The fingerprint mode ${showValue(mode)} is none: b, j, or j- with JSON pointers.`;
  }
  return { mode: mode as FingerprintMode, digest };
}

/** The error for a line or row that is no message. A list with one such is not compared at all. */
export const refused = (source: string, place: string, why: string): InboxError =>
  new InboxError("sent-refused", `${showValue(source, 300).slice(1, -1)}, ${place}: ${why}`);
