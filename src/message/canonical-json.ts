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
  const writer = new Writer(text, byteOrderMark ? 1 : 0);
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

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

/** Sorts both lists by the keys' UTF-16 code units, as RFC 8785 has it. False if a key is there twice. */
function sortByKey(keys: string[], members: string[]): boolean {
  if (keys.length > 32) {
    const texts = new Map(keys.map((key, i) => [key, members[i]!]));
    if (texts.size < keys.length) return false;
    keys.sort();
    keys.forEach((key, i) => (members[i] = texts.get(key)!));
    return true;
  }
  // Most objects are small, and for them inserting is faster.
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i]!;
    const member = members[i]!;
    let place = i;
    while (place > 0 && keys[place - 1]! > key) {
      keys[place] = keys[place - 1]!;
      members[place] = members[place - 1]!;
      place--;
    }
    if (place > 0 && keys[place - 1] === key) return false;
    keys[place] = key;
    members[place] = member;
  }
  return true;
}

/** Reads the document once, from left to right; every method returns the canonical text of what it read. */
class Writer {
  readonly text: string;
  at: number;
  /** The value of the string that `string()` read last. */
  unescaped = "";

  constructor(text: string, start: number) {
    this.text = text;
    this.at = start;
  }

  document(except: PointerTree | undefined): string {
    if (!this.text.isWellFormed()) this.refuse("a lone surrogate");
    const out = this.value(except, 0);
    this.skipSpace();
    if (this.at < this.text.length) this.refuse("text after the document's end");
    return out;
  }

  value(except: PointerTree | undefined, depth: number): string {
    switch (this.skipSpace()) {
      case 0x22:
        return this.string();
      case 0x7b:
        return depth < maxJsonDepth
          ? this.object(except, depth + 1)
          : this.refuse(`nesting over ${maxJsonDepth}`);
      case 0x5b:
        return depth < maxJsonDepth
          ? this.array(except, depth + 1)
          : this.refuse(`nesting over ${maxJsonDepth}`);
      case 0x74:
        return this.word("true");
      case 0x66:
        return this.word("false");
      case 0x6e:
        return this.word("null");
      default:
        return this.number();
    }
  }

  object(except: PointerTree | undefined, depth: number): string {
    const from = this.at++;
    if (this.skipSpace() === 0x7d) {
      this.at++;
      return "{}";
    }
    const keys: string[] = [];
    const members: string[] = [];
    const left: string[] = [];
    let sorted = true;
    for (;;) {
      if (this.skipSpace() !== 0x22) this.refuse("a key is missing");
      const keyText = this.string();
      const key = this.unescaped;
      if (this.skipSpace() !== 0x3a) this.refuse("a colon is missing");
      this.at++;
      const part = except?.children.get(key);
      const member = `${keyText}:${this.value(part, depth)}`;
      if (part?.leftOut === true) {
        // At most as many as there are pointers, unless a key is there twice.
        if (left.includes(key)) this.refuse("a key is there twice", from);
        left.push(key);
      } else {
        if (keys.length > 0 && keys[keys.length - 1]! >= key) sorted = false;
        keys.push(key);
        members.push(member);
      }
      const code = this.skipSpace();
      this.at++;
      if (code === 0x7d) break;
      if (code !== 0x2c) this.refuse("a comma or } is missing", this.at - 1);
    }
    if (!sorted && !sortByKey(keys, members)) this.refuse("a key is there twice", from);
    let out = "{";
    for (let i = 0; i < members.length; i++) out += i === 0 ? members[i]! : `,${members[i]!}`;
    return `${out}}`;
  }

  array(except: PointerTree | undefined, depth: number): string {
    this.at++;
    if (this.skipSpace() === 0x5d) {
      this.at++;
      return "[]";
    }
    let out = "[";
    for (let index = 0; ; index++) {
      const part = except?.children.get(String(index));
      const item = this.value(part, depth);
      if (part?.leftOut !== true) out += out === "[" ? item : `,${item}`;
      const code = this.skipSpace();
      this.at++;
      if (code === 0x5d) return `${out}]`;
      if (code !== 0x2c) this.refuse("a comma or ] is missing", this.at - 1);
    }
  }

  string(): string {
    const { text } = this;
    const from = this.at;
    let at = from;
    let escaped = false;
    for (;;) {
      const code = text.charCodeAt(++at);
      if (code === 0x22) break;
      if (code === 0x5c) {
        escaped = true;
        at++;
      } else if (!(code >= 0x20)) {
        this.refuse(
          at >= text.length ? "the text ends inside a string" : "a control character inside a string",
          at,
        );
      }
    }
    this.at = at + 1;
    const raw = text.slice(from, this.at);
    if (!escaped) {
      this.unescaped = raw.slice(1, -1);
      return raw;
    }
    try {
      this.unescaped = JSON.parse(raw) as string;
    } catch {
      this.refuse("a wrong escape inside a string", from);
    }
    if (!this.unescaped.isWellFormed()) this.refuse("a lone surrogate", from);
    return JSON.stringify(this.unescaped);
  }

  number(): string {
    const { text } = this;
    const from = this.at;
    const negative = text.charCodeAt(from) === 0x2d;
    const whole = negative ? from + 1 : from;
    const leadingZero = text.charCodeAt(whole) === 0x30;
    let at = leadingZero ? whole + 1 : this.digits(whole);
    // Plain: already in canonical form.
    let plain = at - whole <= 21 && !(leadingZero && negative);
    if (text.charCodeAt(at) === 0x2e) {
      at = this.digits(at + 1);
      if (leadingZero || text.charCodeAt(at - 1) === 0x30) plain = false;
    }
    const code = text.charCodeAt(at);
    if (code === 0x65 || code === 0x45) {
      const sign = text.charCodeAt(at + 1);
      at = this.digits(sign === 0x2b || sign === 0x2d ? at + 2 : at + 1);
      plain = false;
    }
    this.at = at;
    const token = text.slice(from, at);
    return plain
      ? token
      : (canonicalNumber(token) ?? this.refuse("an exponent of more than 15 digits", from));
  }

  /** The end of the digits, one at least, that begin at `from`. */
  digits(from: number): number {
    let at = from;
    while (isDigit(this.text.charCodeAt(at))) at++;
    return at > from ? at : this.refuse("a value or a digit is missing", from);
  }

  word(expected: string): string {
    if (!this.text.startsWith(expected, this.at)) this.refuse("a value is missing");
    this.at += expected.length;
    return expected;
  }

  /** The code of the next character that is no white space; NaN at the end. */
  skipSpace(): number {
    let code = this.text.charCodeAt(this.at);
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09)
      code = this.text.charCodeAt(++this.at);
    return code;
  }

  refuse(reason: string, at = this.at): never {
    throw new Refusal(reason, at);
  }
}
