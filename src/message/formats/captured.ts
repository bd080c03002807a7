import { decodeUtf8, withoutByteOrderMark } from "../utf8.ts";
import type { RawDelivery } from "./format.ts";
import { property } from "./property.ts";

/**
 * The deliveries that a file holds: a capture (what a Kafka, SQS, NATS or HTTP tool writes, with headers and bodies), a
 * line-delimited list of documents or captures, or else the file as one body. `channel` is used where a capture names
 * none.
 */
export function capturedDeliveries(file: Uint8Array, channel: string): readonly RawDelivery[] {
  const whole: readonly RawDelivery[] = [{ body: file, channel }];
  const text = decodeUtf8(file);
  if (text === undefined || !/^\ufeff?\s*[[{]/.test(text)) return whole;
  const document = parse(withoutByteOrderMark(text));
  if (document !== undefined) return fromDocument(document.value, channel) ?? whole;
  const lines = withoutByteOrderMark(text)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== "");
  if (lines.length < 2 || parse(lines[0]!) === undefined) return whole;
  return lines.flatMap((line) => {
    const parsed = parse(line);
    return (parsed && fromDocument(parsed.value, channel)) ?? [{ body: line, channel }];
  });
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** The deliveries of a document that is a capture; `undefined` if it is none. */
function fromDocument(document: unknown, channel: string): readonly RawDelivery[] | undefined {
  const list = ["deliveries", "messages", "Messages"]
    .map((name) => property(document, name))
    .find((value) => Array.isArray(value)) as readonly unknown[] | undefined;
  const outer = textOf(document, ["topic", "queue", "path"]);
  const deliveries = (list ?? [document]).map((item) => toDelivery(item, outer ?? channel));
  return deliveries.every((delivery) => delivery !== undefined) && deliveries.length > 0
    ? deliveries
    : undefined;
}

function toDelivery(item: unknown, channel: string): RawDelivery | undefined {
  const body = bodyOf(item);
  if (body === undefined) return undefined;
  return {
    body,
    headers: revive(property(item, "headers") ?? attributeValues(property(item, "MessageAttributes"))),
    properties: property(item, "Body") === undefined ? property(item, "properties") : item,
    key: revive(property(item, "key")),
    channel:
      textOf(item, ["topic", "queue", "path"]) ??
      (hasHeaders(item) ? textOf(item, ["subject"]) : undefined) ??
      channel,
  };
}

/** The values of SQS message attributes, which each stand in an object with their type. */
function attributeValues(attributes: unknown): unknown {
  if (typeof attributes !== "object" || attributes === null) return undefined;
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, property(value, "StringValue")]),
  );
}

const hasHeaders = (item: unknown): boolean => typeof property(item, "headers") === "object";

function bodyOf(item: unknown): RawDelivery["body"] | undefined {
  const base64 = property(item, "valueB64") ?? property(item, "bodyBase64");
  if (typeof base64 === "string") return Buffer.from(base64, "base64");
  const names = ["rawBody", "Body", "valueUtf8", ...(hasHeaders(item) ? ["body", "value", "data"] : [])];
  for (const name of names) {
    const value = revive(property(item, name));
    if (value === null || typeof value === "string" || value instanceof Uint8Array) return value;
  }
  return undefined;
}

function textOf(item: unknown, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = property(item, name);
    if (typeof value === "string") return value;
  }
  return undefined;
}

/** Turns what `JSON.stringify` makes of a Buffer back into bytes, a few levels deep. */
function revive(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null || depth > 4) return value;
  const data = property(value, "data");
  if (property(value, "type") === "Buffer" && Array.isArray(data)) return Buffer.from(data as number[]);
  if (Array.isArray(value)) return value.map((item) => revive(item, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, revive(item, depth + 1)]));
}
