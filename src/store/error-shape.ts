import { hash } from "node:crypto";

/** An error without what is different from message to message, and the short name of all errors of that shape. */
export interface ErrorShape {
  /** For people: `no account <id> in "…"`. At most 300 characters. */
  readonly shape: string;
  /** 16 hex digits over code and shape. */
  readonly group: string;
}

const readCharacters = 1_000;
const shapeCharacters = 300;

// In this order: what is masked is out of reach of the rules behind it. Each is linear, and none of the marks holds
// anything that a rule would mask again.
const masks: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<uuid>"],
  // A quotation begins where no word ends, so that an apostrophe begins none.
  [/(?<![\p{L}\p{N}])"[^"\n]*"/gu, '"…"'],
  [/(?<![\p{L}\p{N}])'[^'\n]*'(?![\p{L}])/gu, "'…'"],
  [/`[^`\n]*`/g, "`…`"],
  [/=\([^()\n]*\)/g, "=(…)"],
  [/[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+/g, "<address>"],
  // Names that machines make: long words in which letters and digits are mixed.
  [/(?<![\w-])(?=[A-Za-z_-]{0,64}\d)(?=[\d_-]{0,64}[A-Za-z])[\w-]{16,}(?![\w-])/g, "<id>"],
  [/\b0x[0-9a-f]+\b/gi, "<n>"],
  [/[-+]?\d+(?:[.,:]\d+)*/g, "<n>"],
  [/<(n|id|uuid)>(?:\s?,\s?<\1>)+/g, "<$1>, …"],
];

/**
 * The shape of an error: numbers, ids, quoted texts, addresses and UUIDs are masked, so that thousands of failures with
 * one cause are one group. Takes any text; reads its first 1,000 characters.
 */
export function errorShape(code: string, error: string): ErrorShape {
  let shape = error.slice(0, readCharacters).toWellFormed();
  for (const [pattern, mark] of masks) shape = shape.replace(pattern, mark);
  shape = shape.replace(/\s+/g, " ").trim().slice(0, shapeCharacters).toWellFormed();
  return { shape, group: hash("sha256", `${code}\n${shape}`, "hex").slice(0, 16) };
}
