import type { MessageCandidate } from "../check-message.ts";
import { receiveMessage, receiveParsed } from "../create-message.ts";
import { memberSpans } from "../json-spans.ts";
import { isRejected } from "../message.ts";
import type { Received } from "../message.ts";
import { rejectMessage } from "../reject-message.ts";
import { parseRfc3339 } from "../rfc3339.ts";
import { showValue } from "../show-value.ts";
import { decodeUtf8, withoutByteOrderMark } from "../utf8.ts";

/** What the event itself does not say, or must not be believed to say. */
export interface CloudEventContext {
  /** Default `""`. From the connection or the topic. */
  readonly tenant?: string | undefined;
  /** The broker's own key, used where the event has no `partitionkey`. */
  readonly brokerKey?: string | undefined;
}

/**
 * Reads one CloudEvent in structured JSON mode (an `application/cloudevents+json` document). Never throws.
 *
 * - Identity: (source, id), which the specification makes unique together. A numeric id is `malformed`: a reader that
 *   turned it into text would merge ids above 2^53.
 * - Payload: the event's data only, so that a copy with a fresh `traceparent` or `time` has the same fingerprint. JSON
 *   data is taken as it stands in the document; text of another content type is unescaped; `data_base64` is decoded: the
 *   payload is what binary mode would have carried. No data, or `null`, is a tombstone: serialisers write one for the
 *   other.
 * - Key: `partitionkey`, else the broker's key, else `subject`.
 * - Headers: the attributes by their names of the HTTP binary mode (`ce-id`, `ce-traceparent`, `content-type`).
 *
 * A rejected message keeps the whole document.
 */
export function readCloudEvent(document: Uint8Array | string, context: CloudEventContext = {}): Received {
  const malformed = (reason: string, identity = {}): Received =>
    rejectMessage({
      code: "malformed",
      text: `The CloudEvent cannot be read: ${reason}.`,
      identity: { tenant: context.tenant, ...identity },
      bytes: bytesOf(document),
    });

  const decoded = typeof document === "string" ? document : decodeUtf8(document);
  if (decoded === undefined) return malformed("it is no UTF-8");
  const text = withoutByteOrderMark(decoded);
  const members = memberSpans(text);
  if (!members.ok) return malformed(members.reason);
  let event: Record<string, unknown>;
  try {
    event = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return malformed("it is no JSON");
  }

  const raw = (name: string): string | undefined => {
    const span = members.spans.get(name);
    return span === undefined ? undefined : text.slice(span.start, span.end);
  };
  const identity = { producer: own(event, "source"), id: own(event, "id") };
  for (const name of texts) {
    const value = own(event, name);
    if (value !== undefined && value !== null && typeof value !== "string") {
      return malformed(`its ${name} must be a text, not ${showValue(value)}`, identity);
    }
  }
  const attributes = event as Readonly<Record<string, string | null | undefined>>;
  if (own(event, "specversion") !== "1.0") {
    return malformed(`its specversion must be "1.0", not ${showValue(own(event, "specversion"))}`, identity);
  }
  if (!own(event, "type")) return malformed("it has no type", identity);

  const time = typeof own(event, "time") === "string" ? parseRfc3339(attributes["time"]!) : null;
  if (time === undefined) {
    return malformed(`its time ${showValue(attributes["time"])} is no RFC 3339 timestamp`, identity);
  }
  const payload = readData(event, raw);
  if (payload === undefined)
    return malformed("its data_base64 is no base64, or there is data beside it", identity);

  const candidate: MessageCandidate = {
    tenant: context.tenant,
    ...identity,
    payload,
    key: own(event, "partitionkey") ?? context.brokerKey ?? own(event, "subject"),
    type: own(event, "type"),
    time: time ?? undefined,
    headers: headersOf(event, raw),
  };
  const isJson = typeof payload === "string" && payload === raw("data");
  const received = isJson ? receiveParsed(candidate, event["data"]) : receiveMessage(candidate);
  return isRejected(received) ? { ...received, bytes: bytesOf(document) } : received;
}

const texts = [
  "id",
  "source",
  "type",
  "subject",
  "time",
  "datacontenttype",
  "dataschema",
  "partitionkey",
] as const;

const own = (object: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined;

const bytesOf = (document: Uint8Array | string): Uint8Array =>
  typeof document === "string"
    ? Buffer.from(document, document.isWellFormed() ? "utf8" : "utf16le")
    : document;

/** The payload; `null` for none, `undefined` for one that cannot be read. */
function readData(
  event: Record<string, unknown>,
  raw: (name: string) => string | undefined,
): Uint8Array | string | null | undefined {
  const data = own(event, "data") ?? null;
  const base64 = own(event, "data_base64") ?? null;
  if (base64 !== null) return data === null ? decodeBase64(base64) : undefined;
  if (data === null) return null;
  return typeof data === "string" && !isJsonType(own(event, "datacontenttype")) ? data : raw("data");
}

function decodeBase64(base64: unknown): Uint8Array | undefined {
  // Buffer.from skips what is no base64, so two different texts would give one payload.
  if (typeof base64 !== "string" || base64.length % 4 !== 0) return undefined;
  return /^[A-Za-z0-9+/]*={0,2}$/.test(base64) ? Buffer.from(base64, "base64") : undefined;
}

/** Whether data of this content type is JSON; without one it is. */
function isJsonType(contentType: unknown): boolean {
  if (typeof contentType !== "string") return true;
  const [mediaType = ""] = contentType.split(";", 1);
  return /[/+]json$/i.test(mediaType.trimEnd());
}

function headersOf(
  event: Record<string, unknown>,
  raw: (name: string) => string | undefined,
): Record<string, string> {
  const headers: [string, string][] = [];
  for (const [name, value] of Object.entries(event)) {
    if (value === null || name === "data" || name === "data_base64") continue;
    // Numbers as they are written: as a double, two different ones may be the same.
    const text = typeof value === "string" ? value : raw(name)!;
    headers.push([name === "datacontenttype" ? "content-type" : `ce-${name}`, text]);
  }
  return Object.fromEntries(headers);
}
