import { itemSpans, memberSpans } from "./json-spans.ts";
import { decodeUtf8, withoutByteOrderMark } from "./utf8.ts";

/**
 * A JSON document that can be asked for its parts as they are written. A part named by its reference tokens (a JSON
 * pointer's): `value` as `JSON.parse` has it, `raw` as its text, `undefined` where there is no such part.
 */
export interface JsonDocument {
  readonly value: unknown;
  raw(tokens: readonly string[]): string | undefined;
  /** Whether a key is there twice on the way, so that two readers might find two different parts. */
  ambiguous(tokens: readonly string[]): boolean;
  /** The part if it is a text, `undefined` otherwise. */
  text(tokens: readonly string[]): string | undefined;
}

/**
 * Reads a body as JSON; a text says why it is none. Refuses a duplicate key wherever it lies on the way to a part that
 * is asked for: two readers might see two different ids.
 */
export function readJson(body: Uint8Array | string | null): JsonDocument | string {
  if (body === null) return "there is no body";
  const decoded = typeof body === "string" ? body : decodeUtf8(body);
  if (decoded === undefined) return "it is no UTF-8";
  const text = withoutByteOrderMark(decoded);
  // Also the guard against deep nesting, on which JSON.parse spends seconds.
  const top = memberSpans(text);
  if (!top.ok && !itemSpans(text).ok) return top.reason;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "it is no JSON";
  }
  const find = (tokens: readonly string[]): string | undefined | typeof twice => {
    let part: string | undefined = text;
    for (const token of tokens) {
      const next = partOf(part, token);
      if (typeof next !== "string") return next;
      part = next;
    }
    return part;
  };
  const raw = (tokens: readonly string[]): string | undefined => {
    const part = find(tokens);
    return part === twice ? undefined : part;
  };
  return {
    value,
    raw,
    ambiguous: (tokens) => find(tokens) === twice,
    text(tokens) {
      const part = raw(tokens);
      return part?.startsWith('"') === true ? (JSON.parse(part) as string) : undefined;
    },
  };
}

const twice: unique symbol = Symbol("a key is there twice");

/** A member of an object or an item of an array, in a text that is known to be JSON. */
function partOf(text: string, token: string): string | undefined | typeof twice {
  const members = memberSpans(text);
  if (members.ok) {
    const span = members.spans.get(token);
    return span === undefined ? undefined : text.slice(span.start, span.end);
  }
  // Known to be JSON, so an object that has no members to give has one of them twice.
  if (/^\s*\{/.test(text)) return twice;
  const items = itemSpans(text);
  if (!items.ok || !/^(?:0|[1-9][0-9]{0,8})$/.test(token)) return undefined;
  const span = items.spans[Number(token)];
  return span === undefined ? undefined : text.slice(span.start, span.end);
}
