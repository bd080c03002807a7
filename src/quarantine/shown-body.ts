import { decodeUtf8 } from "../message/utf8.ts";
import type { Redaction } from "./redact.ts";

/**
 * A payload as people may see it. `none`: a message without a body. `text`: with `"***"` in place of what is hidden.
 * `bytes`: it is no text. `hidden`: parts of payloads are to be hidden, and in this one they cannot be found for sure.
 */
export type ShownPayload =
  | { readonly kind: "none" }
  | { readonly kind: "text"; readonly text: string; readonly bytes: number }
  | { readonly kind: "bytes"; readonly base64: string; readonly bytes: number }
  | { readonly kind: "hidden"; readonly bytes: number };

export function showPayload(redaction: Redaction, payload: Uint8Array | null): ShownPayload {
  if (payload === null) return { kind: "none" };
  const bytes = payload.byteLength;
  const text = decodeUtf8(payload);
  const shown = text === undefined ? undefined : redaction.payload(text);
  if (shown !== undefined) return { kind: "text", text: shown, bytes };
  if (redaction.namesParts) return { kind: "hidden", bytes };
  return { kind: "bytes", base64: Buffer.from(payload).toString("base64"), bytes };
}

/** What a comparison may see of a payload; `undefined` where that is nothing. */
export function comparable(redaction: Redaction, payload: Uint8Array | null): Uint8Array | null | undefined {
  const shown = showPayload(redaction, payload);
  switch (shown.kind) {
    case "none":
      return null;
    case "text":
      return Buffer.from(shown.text);
    case "bytes":
      return payload;
    case "hidden":
      return undefined;
  }
}
