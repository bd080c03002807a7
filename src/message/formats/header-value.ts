import { isUint8Array } from "node:util/types";
import type { Fault } from "../check-message.ts";
import { showValue } from "../show-value.ts";
import { decodeUtf8 } from "../utf8.ts";

/**
 * How an id is read. `text`: as it is, upper and lower case apart. `uuid`: sixteen bytes, or a UUID's text in any case,
 * give the UUID in lower case; anything else is refused.
 */
export type IdRule = "text" | "uuid";

/** Calls `visit` for every header, whatever shape the client gives headers in. Names that are no text are passed over. */
export function eachHeader(headers: unknown, visit: (name: string, value: unknown) => void): void {
  if (typeof headers !== "object" || headers === null) return;
  if (headers instanceof Map) {
    for (const [name, value] of headers) visitNamed(name, value, visit);
  } else if (Array.isArray(headers)) {
    for (const item of headers as unknown[]) {
      if (Array.isArray(item)) visitNamed(item[0], item[1], visit);
      else if (typeof item === "object" && item !== null) {
        for (const name of Object.keys(item)) visit(name, (item as Record<string, unknown>)[name]);
      }
    }
  } else {
    for (const name in headers) {
      if (Object.hasOwn(headers, name)) visit(name, (headers as Record<string, unknown>)[name]);
    }
  }
}

function visitNamed(name: unknown, value: unknown, visit: (name: string, value: unknown) => void): void {
  const text = isUint8Array(name) ? decodeUtf8(name) : name;
  if (typeof text === "string") visit(text, value);
}

/** One header value as a text: texts as they are, bytes as strict UTF-8. Nothing else is a text. */
export function valueText(value: unknown, name: string): string | Fault {
  if (typeof value === "string") return value;
  if (!isUint8Array(value)) {
    return {
      code: "invalid-identity",
      text: `The header ${showValue(name)} is no text: it is ${showValue(value)}.`,
    };
  }
  return (
    decodeUtf8(value) ?? { code: "invalid-identity", text: `The header ${showValue(name)} is no UTF-8.` }
  );
}

/**
 * A header by its name in any case; `undefined` if it is not there. Sent more than once, all its values must be equal:
 * picking one would be picking an identity.
 */
export function headerValue(
  headers: unknown,
  name: string,
  rule: IdRule = "text",
): string | undefined | Fault {
  const wanted = name.toLowerCase();
  let found: string | undefined | Fault;
  const take = (value: unknown): void => {
    if (value === undefined || value === null || typeof found === "object") return;
    const text = rule === "uuid" ? uuidText(value, name) : valueText(value, name);
    if (found === undefined || typeof text === "object") found = text;
    else if (found !== text) {
      found = {
        code: "invalid-identity",
        text: `The header ${showValue(name)} has several values that differ.`,
      };
    }
  };
  eachHeader(headers, (header, value) => {
    if (header !== name && (header.length !== name.length || header.toLowerCase() !== wanted)) return;
    if (Array.isArray(value)) value.forEach(take);
    else take(value);
  });
  return found;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A UUID of sixteen bytes or of text, as lower-case text. */
export function uuidText(value: unknown, name: string): string | Fault {
  if (isUint8Array(value) && value.byteLength === 16) {
    const hex = Buffer.from(value).toString("hex");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }
  const text = valueText(value, name);
  if (typeof text === "object" || uuid.test(text))
    return typeof text === "object" ? text : text.toLowerCase();
  return { code: "invalid-identity", text: `The header ${showValue(name)} is no UUID: ${showValue(text)}.` };
}

/** A key as a text, for order only: bytes that are no UTF-8 are written in base64. */
export function keyText(key: unknown): string | undefined {
  if (typeof key === "string") return key;
  if (isUint8Array(key)) return decodeUtf8(key) ?? `base64:${Buffer.from(key).toString("base64")}`;
  return typeof key === "number" || typeof key === "bigint" ? String(key) : undefined;
}

/** All headers as texts, for a message to carry: nothing is decided by them, so what is no text is written as it can be. */
export function headerTexts(headers: unknown): Record<string, string> {
  const texts: Record<string, string> = {};
  eachHeader(headers, (name, value) => setHeader(texts, name, value));
  return texts;
}

/** Adds one header to those that a message carries, as far as it can be written as a text. */
export function setHeader(texts: Record<string, string>, name: string, value: unknown): void {
  const text = looseText(value);
  if (text !== undefined) setText(texts, name, text);
}

/** Sets a header also where its name means something to JavaScript. */
export function setText(texts: Record<string, string>, name: string, text: string): void {
  if (name === "__proto__") {
    Object.defineProperty(texts, name, { value: text, enumerable: true, configurable: true, writable: true });
  } else texts[name] = text;
}

function looseText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (isUint8Array(value)) return decodeUtf8(value) ?? `base64:${Buffer.from(value).toString("base64")}`;
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint")
    return String(value);
  if (!Array.isArray(value)) return undefined;
  const texts = value.map(looseText).filter((text) => text !== undefined);
  return new Set(texts).size === 1 ? texts[0] : JSON.stringify(texts);
}
