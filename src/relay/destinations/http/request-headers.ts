import { createHmac } from "node:crypto";
import { InboxError } from "../../../errors.ts";
import type { Effect } from "../../effect.ts";

/** Headers that belong to one connection, or that the request itself decides. */
const notForwarded = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"],
  ...["trailer", "transfer-encoding", "upgrade", "host", "content-length", "expect"],
]);

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const printable = /^[\x21-\x7e]{1,255}$/;

/** An id that a header carries as it is, or the digest that stands for it. */
export const wireId = ({ id, digest }: Effect): string => (printable.test(id) ? id : `sha256-${digest}`);

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
  for (const [name, value] of Object.entries(effect.headers)) put(name, value);
  for (const [name, value] of Object.entries(cloudEventHeaders(effect))) put(name, value);
  if (effect.payload !== null) headers["content-type"] ??= "application/octet-stream";
  headers["content-length"] = String(effect.payload?.byteLength ?? 0);
  // A structured-field string (RFC 9651), as draft-ietf-httpapi-idempotency-key-header wants it.
  headers["idempotency-key"] = `"${wireId(effect).replace(/["\\]/g, "\\$&")}"`;
  for (const [name, value] of Object.entries(added)) put(name, value);
  return headers;
}

function cloudEventHeaders({ id, producer, type, time, key }: Effect): Record<string, string> {
  return {
    "ce-specversion": "1.0",
    "ce-id": percentEncoded(id),
    "ce-source": percentEncoded(producer),
    "ce-type": percentEncoded(type ?? "transactional-inbox.effect"),
    ...(time === undefined ? {} : { "ce-time": time.toISOString() }),
    ...(key === undefined ? {} : { "ce-partitionkey": percentEncoded(key) }),
  };
}

/** As the HTTP binding of CloudEvents writes values: what is not printable ASCII, space, quote and percent in percent. */
const percentEncoded = (text: string): string =>
  text.replace(/[^\x21\x23\x24\x26-\x7e]+/gu, (part) =>
    Array.from(Buffer.from(part), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );

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

/** The headers of Standard Webhooks 1.0; a signature for each key, so that a secret can be changed. */
export function signatureHeaders(
  effect: Effect,
  keys: readonly Buffer[],
  nowMs: number,
): Readonly<Record<string, string>> {
  const id = wireId(effect);
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signatures = keys.map((key) => {
    const hmac = createHmac("sha256", key).update(`${id}.${timestamp}.`);
    if (effect.payload !== null) hmac.update(effect.payload);
    return `v1,${hmac.digest("base64")}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
