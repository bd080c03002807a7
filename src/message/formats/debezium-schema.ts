import { memberSpans } from "../json-spans.ts";

/**
 * The payload inside a JSON converter's `{"schema": …, "payload": …}`, as it is written; `undefined` where there is no
 * such envelope. Only looks at the outermost level: whether the payload is JSON is for its reader to find.
 */
export function unwrapSchema(text: string): string | undefined {
  if (!text.includes('"schema"')) return undefined;
  const members = memberSpans(text);
  if (!members.ok || members.spans.size !== 2 || !members.spans.has("schema")) return undefined;
  const span = members.spans.get("payload");
  return span === undefined ? undefined : text.slice(span.start, span.end);
}
