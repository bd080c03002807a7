import { gunzipSync } from "node:zlib";
import type { Fault } from "../check-message.ts";
import { storeText } from "../create-message.ts";
import { parseRfc3339 } from "../rfc3339.ts";
import { readEnvelope } from "./as4-envelope.ts";
import type { PartInfo, TypedName, UserMessage } from "./as4-envelope.ts";
import { fault, ignored, readAs, refused } from "./format.ts";
import type { Format, RawDelivery, ReadItem, Why } from "./format.ts";
import { headerValue } from "./header-value.ts";
import { joinName } from "./join-name.ts";
import { mimeParts, multipartBoundary, splitHeaders } from "./mime.ts";
import type { MimePart } from "./mime.ts";

export interface As4Options {
  /** The most bytes that the parts of one message may have together after decompression; default 64 MiB. More is `too-large`. */
  readonly maxPayloadBytes?: number | undefined;
}

const why: Why = {
  identity:
    "eb:MessageId of the user message, without the white space round it, in the name of the sending party",
  payload:
    "the payload parts, decompressed: one as it is, several as a JSON list; else the SOAP body; else what the user message says, without its timestamp",
  key: "eb:ConversationId, as a text",
  time: "eb:Timestamp, if it has a time zone",
};

/**
 * AS4 (ebMS3 user messages): a SOAP envelope alone, or in a MIME multipart body with its parts, from HTTP or a file. The
 * payload leaves out what a resend may change: prefixes, white space, the timestamp. Signals (receipts, errors, pull
 * requests) are ignored. The signature must have been checked before.
 */
export const as4 = ({ maxPayloadBytes = 64 * 1024 * 1024 }: As4Options = {}): Format => ({
  name: "as4",
  fingerprint: { by: "bytes" },
  read(delivery) {
    const { body } = delivery;
    if (body === null) return refused(delivery, fault("malformed", "The AS4 message has no body."));
    const opened = openAs4(delivery, typeof body === "string" ? storeText(body) : body);
    if (typeof opened === "string") {
      return refused(delivery, fault("malformed", `The AS4 message cannot be read: ${opened}.`));
    }
    const envelope = readEnvelope(opened.envelope);
    if (envelope === "signal") return ignored("an AS4 signal: a receipt, an error or a pull request");
    if ("code" in envelope) return refused(delivery, envelope);
    return readUserMessage(delivery, envelope, opened.parts, maxPayloadBytes);
  },
});

/** A delivery taken apart. */
export interface Opened {
  readonly envelope: Uint8Array;
  /** `undefined` where the envelope came alone. */
  readonly parts: readonly MimePart[] | undefined;
}

/** The envelope and the parts beside it, or why there are none. A file may hold the MIME headers that HTTP carries apart. */
export function openAs4(delivery: RawDelivery, body: Uint8Array): Opened | string {
  const header = headerValue(delivery.headers, "content-type");
  let contentType = typeof header === "string" ? header : undefined;
  let bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const beginning = bytes.toString("latin1", 0, 300);
  if (contentType === undefined && /^[A-Za-z][A-Za-z0-9-]*:/.test(beginning)) {
    const split = splitHeaders(bytes);
    if (typeof split === "string") return split;
    contentType = split.headers.get("content-type");
    bytes = split.rest;
  } else if (contentType === undefined && beginning.startsWith("--")) {
    const boundary = /^--([^\r\n]{1,200})\r?\n/.exec(beginning)?.[1] ?? "";
    contentType = `multipart/related; boundary="${boundary.replace(/["\\]/g, "\\$&")}"`;
  }
  const multipart = contentType === undefined ? undefined : multipartBoundary(contentType);
  if (multipart === undefined) return { envelope: bytes, parts: undefined };
  const parts = mimeParts(bytes, multipart.boundary);
  if (typeof parts === "string") return parts;
  const root =
    parts.find(
      (part) => multipart.start !== undefined && part.headers.get("content-id") === multipart.start,
    ) ?? parts[0];
  return root === undefined ? "it has no parts" : { envelope: root.content, parts };
}

function readUserMessage(
  delivery: RawDelivery,
  message: UserMessage,
  parts: readonly MimePart[] | undefined,
  maxPayloadBytes: number,
): readonly ReadItem[] {
  const producer = message.from.length === 0 ? undefined : joinParties(message.from);
  const identity = { producer, id: message.messageId };
  const payload = readPayload(message, parts, maxPayloadBytes);
  if (typeof payload === "object" && "code" in payload) return refused(delivery, payload, identity);
  return [
    readAs(
      delivery,
      {
        ...identity,
        payload,
        key: message.conversationId,
        type: message.action,
        time: message.timestamp === undefined ? undefined : parseRfc3339(message.timestamp),
        headers: describe(message),
      },
      why,
    ),
  ];
}

function readPayload(
  message: UserMessage,
  parts: readonly MimePart[] | undefined,
  maxPayloadBytes: number,
): Uint8Array | string | Fault {
  const attached = message.parts.filter(({ href }) => href?.startsWith("cid:") === true);
  if (parts === undefined || attached.length === 0) return message.body ?? summary(message);
  const contents: { href: string; mimeType: string; content: Uint8Array }[] = [];
  const byId = new Map(parts.map((part) => [part.headers.get("content-id"), part]));
  let left = maxPayloadBytes;
  for (const info of attached) {
    const id = `<${contentId(info.href!)}>`;
    const part = byId.get(id);
    if (part === undefined) {
      const text = "The AS4 message names a payload part that it does not carry, or names one twice.";
      return fault("malformed", text);
    }
    // Each part is taken once: a small part that is named again and again would be decompressed as often.
    byId.delete(id);
    const content = decompress(part.content, info, left);
    if ("code" in content) return content;
    left -= content.byteLength;
    contents.push({ href: info.href!, mimeType: propertyOf(info, "MimeType"), content });
  }
  if (contents.length === 1) return contents[0]!.content;
  return JSON.stringify(
    contents.map(({ href, mimeType, content }) => ({
      href,
      mimeType,
      base64: Buffer.from(content).toString("base64"),
    })),
  );
}

function contentId(href: string): string {
  try {
    return decodeURIComponent(href.slice("cid:".length));
  } catch {
    return href.slice("cid:".length);
  }
}

function decompress(content: Uint8Array, info: PartInfo, maxBytes: number): Uint8Array | Fault {
  const tooLarge = fault(
    "too-large",
    "The payload parts of the AS4 message are over the limit of the source.",
  );
  if (propertyOf(info, "CompressionType").toLowerCase() !== "application/gzip") {
    return content.byteLength > maxBytes ? tooLarge : content;
  }
  if (maxBytes < 1) return tooLarge;
  try {
    return gunzipSync(content, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") return tooLarge;
    return fault("malformed", "A payload part of the AS4 message is no gzip, as it says it is.");
  }
}

const propertyOf = (info: PartInfo, name: string): string =>
  info.properties.find(({ type }) => type.toLowerCase() === name.toLowerCase())?.value ?? "";

const joinParties = (parties: readonly TypedName[]): string =>
  joinName(parties.flatMap(({ type, value }) => [type, value]));

/** What the message says apart from what a resend may change: for an envelope whose parts are kept elsewhere. */
function summary({
  messageId,
  refToMessageId,
  from,
  to,
  agreement,
  service,
  action,
  conversationId,
  properties,
  parts,
}: UserMessage): string {
  return JSON.stringify({
    messageId,
    refToMessageId,
    from,
    to,
    agreement,
    service,
    action,
    conversationId,
    properties,
    parts,
  });
}

function describe(message: UserMessage): Record<string, string> {
  const headers: [string, string | undefined][] = [
    ["as4-message-id", message.messageId],
    ["as4-ref-to-message-id", message.refToMessageId],
    ["as4-timestamp", message.timestamp],
    ["as4-from", joinParties(message.from)],
    ["as4-to", joinParties(message.to)],
    ["as4-agreement", message.agreement],
    ["as4-service", message.service?.value],
    ["as4-action", message.action],
    ["as4-conversation-id", message.conversationId],
    ...message.properties.map(({ type, value }): [string, string] => [`as4-property-${type}`, value]),
  ];
  return Object.fromEntries(headers.filter((header): header is [string, string] => header[1] !== undefined));
}
