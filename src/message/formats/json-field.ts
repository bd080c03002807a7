import type { Fault } from "../check-message.ts";
import type { JsonDocument } from "../json-document.ts";
import { showValue } from "../show-value.ts";
import { fault } from "./format.ts";

/**
 * A text or a whole number of a JSON document, as it is written: `JSON.parse` would merge numbers above 2^53. `null` and
 * nothing are nothing; anything else is no name. `pointer` is for the message.
 */
export function jsonField(
  document: JsonDocument,
  tokens: readonly string[],
  pointer: string,
): string | undefined | Fault {
  const raw = document.raw(tokens);
  if (raw === undefined && document.ambiguous(tokens)) {
    return fault("malformed", `The document has a key twice on the way to ${showValue(pointer)}.`);
  }
  if (raw === undefined || raw === "null") return undefined;
  if (raw.startsWith('"')) return JSON.parse(raw) as string;
  if (/^-?\d+$/.test(raw)) return raw;
  return fault(
    "invalid-identity",
    `The field ${showValue(pointer)} is no text and no whole number: ${showValue(raw)}.`,
  );
}
