import { maxJsonDepth } from "./limits.ts";

/** A part of a JSON text: `text.slice(start, end)` is its value. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
}

/** Where the members or items of a JSON text's top level are, or why it cannot be said. */
export type SpansResult<Spans> =
  { readonly ok: true; readonly spans: Spans } | { readonly ok: false; readonly reason: string };

/**
 * The members of a JSON object with their places in the text, so that a part can be taken out of an envelope as it
 * stands: its digits, its key order, its white space. Checks what `JSON.parse` hides (duplicate keys at this level,
 * nesting over `maxJsonDepth`) and leaves to it what it finds: use it beside `JSON.parse`, and only if that succeeds.
 * Never throws; linear.
 */
export function memberSpans(text: string): SpansResult<ReadonlyMap<string, JsonSpan>> {
  let at = skipSpace(text, text.charCodeAt(0) === 0xfeff ? 1 : 0);
  if (text.charCodeAt(at) !== 0x7b) return fail("it is no JSON object");
  const spans = new Map<string, JsonSpan>();
  at = skipSpace(text, at + 1);
  while (text.charCodeAt(at) === 0x22) {
    const keyEnd = skipString(text, at);
    const key = unquote(text.slice(at, keyEnd));
    if (key === undefined) return fail("it has a wrong escape in a key");
    if (spans.has(key)) return fail("it has a key twice");
    at = skipSpace(text, keyEnd);
    if (text.charCodeAt(at) !== 0x3a) return fail("a colon is missing");
    const start = skipSpace(text, at + 1);
    const end = skipValue(text, start);
    if (end === undefined) return fail(`it nests over ${maxJsonDepth} levels`);
    spans.set(key, { start, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === 0x2c) at = skipSpace(text, at + 1);
  }
  return { ok: true, spans };
}

/** The items of a JSON array with their places in the text. Otherwise as `memberSpans`. */
export function itemSpans(text: string): SpansResult<readonly JsonSpan[]> {
  let at = skipSpace(text, text.charCodeAt(0) === 0xfeff ? 1 : 0);
  if (text.charCodeAt(at) !== 0x5b) return fail("it is no JSON array");
  const spans: JsonSpan[] = [];
  at = skipSpace(text, at + 1);
  while (at < text.length && text.charCodeAt(at) !== 0x5d) {
    const end = skipValue(text, at);
    if (end === undefined) return fail(`it nests over ${maxJsonDepth} levels`);
    if (end === at) return fail("a value is missing");
    spans.push({ start: at, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === 0x2c) at = skipSpace(text, at + 1);
  }
  return { ok: true, spans };
}

const fail = (reason: string): { readonly ok: false; readonly reason: string } => ({ ok: false, reason });

function unquote(quoted: string): string | undefined {
  if (!quoted.includes("\\")) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  let code = text.charCodeAt(at);
  while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) code = text.charCodeAt(++at);
  return at;
}

/** The end of the string that begins at `from`; the text's end if it never ends. */
function skipString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at++);
    if (code === 0x22) return at;
    if (code === 0x5c) at++;
  }
  return text.length;
}

/** The end of the value that begins at `from`; `undefined` if it nests too deep. */
function skipValue(text: string, from: number): number | undefined {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    switch (code) {
      case 0x22:
        at = skipString(text, at);
        if (depth === 0) return at;
        break;
      case 0x7b:
      case 0x5b:
        if (++depth > maxJsonDepth) return undefined;
        at++;
        break;
      case 0x7d:
      case 0x5d:
        if (depth === 0) return at;
        at++;
        if (--depth === 0) return at;
        break;
      case 0x2c:
      case 0x20:
      case 0x0a:
      case 0x0d:
      case 0x09:
        if (depth === 0) return at;
        at++;
        break;
      default:
        at++;
    }
  }
  return text.length;
}
