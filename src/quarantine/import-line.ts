import { hash } from "node:crypto";
import { checkIdentity } from "../message/check-message.ts";
import { computeFingerprint, type Fingerprint, type FingerprintMode } from "../message/fingerprint.ts";
import { parseFingerprintMode } from "../message/fingerprint-mode.ts";
import { identityDigest } from "../message/identity.ts";
import { maxConsumerBytes } from "../message/limits.ts";
import { showValue } from "../message/show-value.ts";
import { isLongerThan, isStorableText } from "../message/text-rules.ts";
import type { StoredBody } from "../store/protection.ts";
import type { ImportedEntry } from "../store/quarantine-store.ts";
import { refusedLine, type NumberedLine } from "./chunk-lines.ts";
import { exportVersion } from "./export-entries.ts";

/** A line of an export, checked. */
export interface ExportedEntry {
  readonly entry: ImportedEntry;
  /** What it was where it was exported. */
  readonly id: string;
  readonly status: "open" | "decided";
}

const maxCount = 2_147_483_647;
const limits = { error: 65_536, label: 16_384, rawIdentity: 1_048_576 };

/**
 * Reads a line of an export. Everything in it is hostile: what does not fit throws `import-refused` with the line's
 * number. A body that is not sealed must have its fingerprint.
 */
export function readExportedLine(line: NumberedLine): ExportedEntry {
  const refuse = (reason: string): Error => refusedLine(line.number, reason);
  const value = jsonObject(line.text, refuse);
  if (value["inboxQuarantine"] !== exportVersion) {
    throw refuse(`it is no entry of an export of version ${exportVersion}.`);
  }
  if (value["redacted"] !== undefined) {
    throw refuse("its body was hidden when it was exported, so nothing can be done with it.");
  }
  const field = fieldsOf(value, refuse);

  const consumer = field.text("consumer", maxConsumerBytes);
  const identity = identityIn(value, consumer, refuse);
  const sealed = value["sealed"] === undefined ? undefined : sealedIn(value["sealed"], refuse);
  const payload = sealed === undefined ? base64In(value, "payload", refuse) : null;
  const headers = sealed === undefined ? headersIn(value["headers"], refuse) : {};
  const fingerprint = fingerprintIn(value, refuse);
  if (sealed === undefined && computeFingerprint(fingerprint.mode, payload).digest !== fingerprint.digest) {
    throw refuse("its payload does not have its fingerprint: one of them was changed.");
  }
  const rawIdentityText =
    identity === undefined ? field.optionalText("rawIdentity", limits.rawIdentity) : undefined;
  const firstFailedAt = field.time("firstFailedAt");
  const status = value["status"];
  if (status !== "open" && status !== "retried" && status !== "repaired" && status !== "discarded") {
    throw refuse(`status is no status: ${showValue(status)}.`);
  }
  const code = field.text("code", 64);
  const id = field.text("id", 32);
  const importKey = hash(
    "sha256",
    JSON.stringify([
      consumer,
      identity?.digest ?? rawIdentityText ?? null,
      fingerprint,
      code,
      firstFailedAt,
      id,
    ]),
    "hex",
  );
  return {
    id,
    status: status === "open" ? "open" : "decided",
    entry: {
      ...{ consumer, identity, rawIdentityText, headers, payload, sealed, fingerprint, code, importKey },
      key: field.optionalText("key", limits.label),
      type: field.optionalText("type", limits.label),
      time: value["time"] === undefined ? undefined : field.time("time"),
      error: field.text("error", limits.error, true),
      attempts: field.count("attempts", 0),
      deliveries: field.count("deliveries", 1),
      firstFailedAt,
      lastFailedAt: field.time("lastFailedAt"),
      handlerVersion: field.text("handlerVersion", 1_024, true),
    },
  };
}

type Refuse = (reason: string) => Error;
type JsonObject = Readonly<Record<string, unknown>>;

function jsonObject(text: string, refuse: Refuse): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refuse("it is no JSON.");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw refuse("it is no JSON object.");
}

interface Fields {
  text(name: string, maxBytes: number, mayBeEmpty?: boolean): string;
  optionalText(name: string, maxBytes: number): string | undefined;
  count(name: string, least: number): number;
  time(name: string): Date;
}

function fieldsOf(value: JsonObject, refuse: Refuse): Fields {
  const text = (name: string, maxBytes: number, mayBeEmpty = false): string => {
    const given = value[name];
    const fits =
      typeof given === "string" &&
      (mayBeEmpty || given !== "") &&
      isStorableText(given) &&
      !isLongerThan(given, maxBytes);
    if (fits) return given;
    throw refuse(`${name} must be a text of at most ${maxBytes} bytes, not ${showValue(given)}.`);
  };
  return {
    text,
    optionalText: (name, maxBytes) => (value[name] === undefined ? undefined : text(name, maxBytes, true)),
    count(name, least) {
      const given = value[name];
      if (typeof given === "number" && Number.isInteger(given) && given >= least && given <= maxCount)
        return given;
      throw refuse(`${name} must be a whole number from ${least} to ${maxCount}, not ${showValue(given)}.`);
    },
    time(name) {
      const given = value[name];
      const fits = typeof given === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(given);
      const time = new Date(fits ? given : Number.NaN);
      // Year 0 is none in SQL.
      if (!Number.isNaN(time.getTime()) && time.getUTCFullYear() >= 1) return time;
      throw refuse(`${name} must be a time such as 2030-01-31T12:00:00.000Z, not ${showValue(given)}.`);
    },
  };
}

function identityIn(value: JsonObject, consumer: string, refuse: Refuse): ImportedEntry["identity"] {
  const {
    tenant,
    producer,
    messageId: id,
  } = value as { tenant?: unknown; producer?: unknown; messageId?: unknown };
  if (tenant === undefined && producer === undefined && id === undefined) return undefined;
  const fault = checkIdentity({ tenant, producer, id });
  if (fault !== undefined) throw refuse(`its identity is none. ${fault.text}`);
  const identity = { tenant: (tenant ?? "") as string, producer: producer as string, id: id as string };
  return { ...identity, digest: identityDigest(consumer, identity) };
}

function base64In(value: JsonObject, name: string, refuse: Refuse): Uint8Array | null {
  const given = value[name];
  if (given === null) return null;
  // Buffer.from passes over what is no base64; what does not come back the same was changed.
  if (typeof given === "string") {
    const bytes = Buffer.from(given, "base64");
    if (bytes.toString("base64") === given) return bytes;
  }
  throw refuse(`${name} must be base64 or null, not ${showValue(given)}.`);
}

function headersIn(given: unknown, refuse: Refuse): Readonly<Record<string, string>> {
  const fits =
    typeof given === "object" &&
    given !== null &&
    !Array.isArray(given) &&
    Object.values(given).every((header) => typeof header === "string");
  if (fits) return given as Readonly<Record<string, string>>;
  throw refuse(`headers must be an object of texts, not ${showValue(given)}.`);
}

function sealedIn(given: unknown, refuse: Refuse): StoredBody {
  if (typeof given !== "object" || given === null) throw refuse("sealed must be an object.");
  const value = given as JsonObject;
  const field = fieldsOf(value, (reason) => refuse(`sealed.${reason}`));
  const headers = field.text("headers", Number.POSITIVE_INFINITY);
  if (!/^sealed:[A-Za-z0-9+/]*={0,2}$/.test(headers)) throw refuse("sealed.headers are not sealed.");
  return { keyId: field.text("keyId", 512), headers, payload: base64In(value, "payload", refuse) };
}

function fingerprintIn(value: JsonObject, refuse: Refuse): Fingerprint {
  const { fingerprint: digest, fingerprintMode: mode } = value;
  if (typeof digest !== "string" || !/^(?:[0-9a-f]{64})?$/.test(digest)) {
    throw refuse(`fingerprint must be 64 hex digits or empty, not ${showValue(digest)}.`);
  }
  try {
    if (typeof mode === "string" && isStorableText(mode)) {
      parseFingerprintMode(mode);
      return { mode: mode as FingerprintMode, digest };
    }
  } catch {
    // Told below.
  }
  throw refuse(`fingerprintMode is unknown to this release: ${showValue(mode)}.`);
}
