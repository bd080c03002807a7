import { createHmac } from "node:crypto";
import { InboxError } from "../../../errors.ts";
import type { Effect } from "../../effect.ts";
import { binaryEvent, percentEncoded } from "../cloud-event.ts";
import { wireId } from "../wire-id.ts";

/** Headers that belong to one connection, or that the request itself decides. */
const notForwarded = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"],
  ...["trailer", "transfer-encoding", "upgrade", "host", "content-length", "expect"],
]);

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const printable = /^[\x21-\x7e]{1,255}$/;

/** An id that a header carries as it is, or the digest that stands for it. */
export const headerId = (effect: Effect): string => wireId(effect, (id) => printable.test(id));

/**
 * What is sent beside the body: the effect's own headers, the id as `Idempotency-Key` and as a CloudEvent in binary mode,
 * and what the options add. Names are in lower case.
 */
export function requestHeaders(
  effect: Effect,
  added: Readonly<Record<string, string>>,
): Record<string, string> {
  const headers: Record<string, string> = {};
  const put = (name: string, value: string): void => {
    const lower = name.toLowerCase();
    if (token.test(lower) && !notForwarded.has(lower)) headers[lower] = headerText(value);
  };
  const { attributes, headers: own, contentType } = binaryEvent(effect);
  for (const [name, value] of own) put(name, value);
  for (const [name, value] of attributes) put(`ce-${name}`, percentEncoded(value));
  if (contentType !== undefined) put("content-type", contentType);
  headers["content-length"] = String(effect.payload?.byteLength ?? 0);
  // A structured-field string (RFC 9651), as draft-ietf-httpapi-idempotency-key-header wants it.
  headers["idempotency-key"] = `"${headerId(effect).replace(/["\\]/g, "\\$&")}"`;
  for (const [name, value] of Object.entries(added)) put(name, value);
  return headers;
}

/** What a header cannot carry is written in percent. */
const headerText = (value: string): string =>
  /^[\x20-\x7e\t]*$/.test(value) ? value : percentEncoded(value);

/** A key for Standard Webhooks, from its secret as it is shown: `whsec_` and base64. Throws `invalid-option`. */
export function signingKey(secret: string): Buffer {
  const text = typeof secret === "string" ? secret.replace(/^whsec_/, "") : "";
  const key = Buffer.from(text, "base64");
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(text) && key.length >= 16) return key;
  throw new InboxError(
    "invalid-option",
    "secret must be that of a Standard Webhook: whsec_ and at least 16 bytes in base64.",
  );
}

/**
 * The headers of Standard Webhooks 1.0; a signature for each key, so that a secret can be changed. Dots part what is
 * signed: an id with one in it would also be the signature of another message, with a shorter id and its rest for a time.
 */
export function signatureHeaders(
  effect: Effect,
  keys: readonly Buffer[],
  nowMs: number,
): Readonly<Record<string, string>> {
  const id = wireId(effect, (one) => printable.test(one) && !one.includes("."));
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signatures = keys.map((key) => {
    const hmac = createHmac("sha256", key).update(`${id}.${timestamp}.`);
    if (effect.payload !== null) hmac.update(effect.payload);
    return `v1,${hmac.digest("base64")}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
