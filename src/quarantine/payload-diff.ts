import { createTwoFilesPatch } from "diff";
import { canonicalJson } from "../message/canonical-json.ts";
import { decodeUtf8 } from "../message/utf8.ts";

/**
 * What a repair changed, as a unified diff. JSON is compared in its canonical form, a line a value, with every digit as
 * it was written; other texts line by line. A sentence where there is nothing to compare line by line.
 */
export function payloadDiff(before: Uint8Array | null, after: Uint8Array | null): string {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  if (old === undefined || fresh === undefined) {
    return `${sizeOf(before)} became ${sizeOf(after)}; there is no text to compare.`;
  }
  if (old === fresh) return "The payloads are the same, but for how they are written.";
  return (
    createTwoFilesPatch("before", "after", old, fresh, undefined, undefined, {
      context: 3,
      // Two texts that have nothing in common would take the square of their length.
      maxEditLength: 2_000,
    }) ?? `${sizeOf(before)} became ${sizeOf(after)}; they differ too much to be compared.`
  );
}

const sizeOf = (payload: Uint8Array | null): string =>
  payload === null ? "a message without payload" : `${payload.byteLength} bytes`;

/** A payload as lines; `undefined` for bytes that are no text. */
function linesOf(payload: Uint8Array | null): string | undefined {
  if (payload === null) return "";
  const text = decodeUtf8(payload);
  if (text === undefined) return undefined;
  const canonical = canonicalJson(text);
  return canonical.ok ? `${indented(canonical.text)}\n` : text.endsWith("\n") ? text : `${text}\n`;
}

/** Canonical JSON, which has no white space of its own, with a line for every value. */
function indented(canonical: string): string {
  let text = "";
  let depth = 0;
  let quoted = false;
  const line = (): string => `\n${"  ".repeat(depth)}`;
  for (let at = 0; at < canonical.length; at++) {
    const unit = canonical[at]!;
    if (quoted) {
      text += unit;
      if (unit === "\\") text += canonical[++at] ?? "";
      else if (unit === '"') quoted = false;
      continue;
    }
    switch (unit) {
      case '"':
        quoted = true;
        text += unit;
        break;
      case "{":
      case "[": {
        const next = canonical[at + 1];
        if (next === "}" || next === "]") {
          text += unit + next;
          at++;
          break;
        }
        depth++;
        text += unit + line();
        break;
      }
      case "}":
      case "]":
        depth--;
        text += line() + unit;
        break;
      case ",":
        text += unit + line();
        break;
      case ":":
        text += ": ";
        break;
      default:
        text += unit;
    }
  }
  return text;
}
