import { canonicalNumber } from "./canonical-number.ts";
import type { PointerTree } from "./json-pointer.ts";
import { maxJsonDepth } from "./limits.ts";

/** `byteOrderMark`: the text began with one, which the canonical text leaves out. `at` counts UTF-16 units. */
export type CanonicalJson =
  | { readonly ok: true; readonly text: string; readonly byteOrderMark: boolean }
  | { readonly ok: false; readonly reason: string; readonly at: number };

/**
 * The canonical text of a JSON text: RFC 8785's order, escapes and white space, with numbers kept exactly (see
 * `canonicalNumber`). Parts that `except` names are read but left out. Refuses what two readers might read differently:
 * duplicate keys, lone surrogates, anything that is no JSON, and nesting over `maxJsonDepth`. Never throws; time and
 * memory grow with the text's length (and the sort of its keys).
 *
 * It goes from text to text because a parse into objects loses what must be kept: the digits of numbers, duplicate
 * keys, the order of keys that look like numbers.
 */
export function canonicalJson(text: string, except?: PointerTree): CanonicalJson {
  const byteOrderMark = text.charCodeAt(0) === 0xfeff;
  const writer = createWriter(text, byteOrderMark ? 1 : 0);
  try {
    return { ok: true, text: writer.document(except), byteOrderMark };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.reason, at: error.at };
    throw error;
  }
}

// No Error: its stack trace would cost more than the whole parse, and hostile payloads come by the thousand.
class Refusal {
  readonly reason: string;
  readonly at: number;
  constructor(reason: string, at: number) {
    this.reason = reason;
    this.at = at;
  }
}

interface Member {
  readonly key: string;
  readonly text: string;
}

const byKey = (a: Member, b: Member): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

function createWriter(text: string, start: number): { document(except: PointerTree | undefined): string } {
  let at = start;
  // The value of the string that `string()` read last.
  let unescaped = "";

  const refuse = (reason: string, position = at): never => {
    throw new Refusal(reason, position);
  };

  const skipSpace = (): number => {
    let code = text.charCodeAt(at);
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) code = text.charCodeAt(++at);
    return code;
  };

  const string = (): string => {
    const from = at;
    let escaped = false;
    for (;;) {
      const code = text.charCodeAt(++at);
      if (code === 0x22) break;
      if (code === 0x5c) {
        escaped = true;
        at++;
      } else if (!(code >= 0x20)) {
        refuse(at >= text.length ? "the text ends inside a string" : "a control character inside a string");
      }
    }
    at++;
    const raw = text.slice(from, at);
    if (!escaped) {
      unescaped = raw.slice(1, -1);
      return raw;
    }
    try {
      unescaped = JSON.parse(raw) as string;
    } catch {
      refuse("a wrong escape inside a string", from);
    }
    if (!unescaped.isWellFormed()) refuse("a lone surrogate", from);
    return JSON.stringify(unescaped);
  };

  const digits = (): void => {
    if (!isDigit(text.charCodeAt(at))) refuse("a digit is missing");
    do at++;
    while (isDigit(text.charCodeAt(at)));
  };

  const number = (): string => {
    const from = at;
    const negative = text.charCodeAt(at) === 0x2d;
    if (negative) at++;
    const whole = at;
    if (text.charCodeAt(at) === 0x30) at++;
    else digits();
    const leadingZero = text.charCodeAt(whole) === 0x30;
    let plain = at - whole <= 21 && !(leadingZero && negative);
    if (text.charCodeAt(at) === 0x2e) {
      at++;
      digits();
      if (leadingZero || text.charCodeAt(at - 1) === 0x30) plain = false;
    }
    const code = text.charCodeAt(at);
    if (code === 0x65 || code === 0x45) {
      const sign = text.charCodeAt(++at);
      if (sign === 0x2b || sign === 0x2d) at++;
      digits();
      plain = false;
    }
    const token = text.slice(from, at);
    return plain ? token : (canonicalNumber(token) ?? refuse("an exponent of more than 15 digits", from));
  };

  const word = (expected: string): string => {
    if (!text.startsWith(expected, at)) refuse("a value is missing");
    at += expected.length;
    return expected;
  };

  const array = (except: PointerTree | undefined, depth: number): string => {
    at++;
    let out = "[";
    if (skipSpace() === 0x5d) {
      at++;
      return "[]";
    }
    for (let index = 0; ; index++) {
      const part = except?.children.get(String(index));
      const item = value(part, depth);
      if (part?.leftOut !== true) out += out === "[" ? item : `,${item}`;
      const code = skipSpace();
      at++;
      if (code === 0x5d) return `${out}]`;
      if (code !== 0x2c) refuse("a comma or ] is missing", at - 1);
    }
  };

  const object = (except: PointerTree | undefined, depth: number): string => {
    const from = at++;
    if (skipSpace() === 0x7d) {
      at++;
      return "{}";
    }
    const members: Member[] = [];
    const left: string[] = [];
    let sorted = true;
    let previous: string | undefined;
    for (;;) {
      if (skipSpace() !== 0x22) refuse("a key is missing");
      const keyText = string();
      const key = unescaped;
      if (skipSpace() !== 0x3a) refuse("a colon is missing");
      at++;
      const part = except?.children.get(key);
      const member = value(part, depth);
      if (part?.leftOut === true) {
        // At most as many as there are pointers, unless a key is there twice.
        if (left.includes(key)) refuse("a key is there twice", from);
        left.push(key);
      } else {
        if (previous !== undefined && previous >= key) sorted = false;
        previous = key;
        members.push({ key, text: `${keyText}:${member}` });
      }
      const code = skipSpace();
      at++;
      if (code === 0x7d) break;
      if (code !== 0x2c) refuse("a comma or } is missing", at - 1);
    }
    if (!sorted) members.sort(byKey);
    let out = "{";
    for (let i = 0; i < members.length; i++) {
      const member = members[i]!;
      if (!sorted && i > 0 && members[i - 1]!.key === member.key) refuse("a key is there twice", from);
      out += i === 0 ? member.text : `,${member.text}`;
    }
    return `${out}}`;
  };

  const value = (except: PointerTree | undefined, depth: number): string => {
    const code = skipSpace();
    switch (code) {
      case 0x22:
        return string();
      case 0x7b:
        return depth < maxJsonDepth ? object(except, depth + 1) : refuse(`nesting over ${maxJsonDepth}`);
      case 0x5b:
        return depth < maxJsonDepth ? array(except, depth + 1) : refuse(`nesting over ${maxJsonDepth}`);
      case 0x74:
        return word("true");
      case 0x66:
        return word("false");
      case 0x6e:
        return word("null");
      default:
        return number();
    }
  };

  return {
    document(except) {
      if (!text.isWellFormed()) refuse("a lone surrogate");
      const out = value(except, 0);
      skipSpace();
      if (at < text.length) refuse("text after the document's end");
      return out;
    },
  };
}
