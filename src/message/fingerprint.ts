import { createHash, hash } from "node:crypto";
import { canonicalJson } from "./canonical-json.ts";
import { parseFingerprintMode } from "./fingerprint-mode.ts";
import { decodeUtf8 } from "./utf8.ts";

/**
 * How two payloads are compared, in the form that is stored beside the fingerprint:
 * `b` the bytes; `j` canonical JSON; `j-/a,/b/c` canonical JSON without these JSON pointers.
 */
export type FingerprintMode = "b" | `j${string}`;

/** `digest`: SHA-256 as 64 lower-case hex digits, or `""` for a tombstone (so that it equals no body's). */
export interface Fingerprint {
  readonly mode: FingerprintMode;
  readonly digest: string;
}

// No UTF-8 text holds this byte, so a payload hashed behind it equals no canonical text.
const notCanonical = Uint8Array.of(0xff);

/**
 * The fingerprint of a payload; strings count as their UTF-8. In a JSON mode, a payload that has no canonical form (no
 * UTF-8, no JSON, a duplicate key, a lone surrogate, too deep) is compared by its bytes: its digest is SHA-256 over the
 * byte 0xff and the payload. Never throws for a payload; throws `invalid-option` for an unknown mode.
 */
export function computeFingerprint(mode: FingerprintMode, payload: Uint8Array | string | null): Fingerprint {
  const parsed = parseFingerprintMode(mode);
  if (payload === null) return { mode, digest: "" };
  if (parsed.by === "bytes") return { mode, digest: hash("sha256", payload, "hex") };
  const text = typeof payload === "string" ? payload : decodeUtf8(payload);
  const canonical = text === undefined ? undefined : canonicalJson(text, parsed.except);
  // Through a Buffer: hashing a text that was put together of many pieces takes twice as long.
  if (canonical?.ok === true) return { mode, digest: hash("sha256", Buffer.from(canonical.text), "hex") };
  return { mode, digest: createHash("sha256").update(notCanonical).update(payload).digest("hex") };
}
