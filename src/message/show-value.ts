const unprintable = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Well-formed text with everything escaped that could move a cursor, reverse a line or hide. */
export const printable = (text: string): string =>
  (text.isWellFormed() ? text : JSON.stringify(text).slice(1, -1)).replace(unprintable, escapeUnit);

/**
 * Any value as a short text for error messages, logs and terminals: strings in quotes with their first `limit`
 * characters (default 64), anything else by its kind. Safe with hostile values: never throws, never runs their code.
 */
export function showValue(value: unknown, limit = 64): string {
  switch (typeof value) {
    case "string": {
      const cut = value.length > limit ? value.slice(0, limit) : value;
      const quoted = JSON.stringify(cut).replace(unprintable, escapeUnit);
      return value.length > limit ? `${quoted}... (${value.length} characters)` : quoted;
    }
    case "number":
    case "boolean":
    case "undefined":
      return String(value);
    case "bigint":
      return "a bigint";
    case "symbol":
      return "a symbol";
    case "function":
      return "a function";
    case "object":
      if (value === null) return "null";
      if (Array.isArray(value)) return `an array of ${value.length}`;
      return value instanceof Uint8Array ? `${value.byteLength} bytes` : "an object";
  }
}
