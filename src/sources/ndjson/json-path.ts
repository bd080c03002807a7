import { InboxError } from "../../errors.ts";
import { itemSpans, memberSpans } from "../../message/json-spans.ts";
import { parsePointer } from "../../message/json-pointer.ts";
import { showValue } from "../../message/show-value.ts";

/** The names on the way to one value in a JSON document. */
export type JsonPath = readonly string[];

/**
 * Reads a path: a JSON pointer (`/order/id`), or names with dots between them (`order.id`). Throws `invalid-option`,
 * naming `option`.
 */
export function parseJsonPath(path: unknown, option: string): JsonPath {
  if (typeof path === "string" && path.startsWith("/")) return parsePointer(path, option);
  const names = typeof path === "string" ? path.split(".") : [];
  if (names.length === 0 || names.includes("")) {
    throw new InboxError(
      "invalid-option",
      `${option}: ${showValue(path)} is no path. It is a JSON pointer such as /order/id, or names such as order.id.`,
    );
  }
  return names;
}

/** What stands at a path; or why the document cannot be read there. */
export type Found = { readonly value: unknown } | { readonly reason: string };

/**
 * The value at a path of a document that `JSON.parse` accepts; `undefined` where there is none. A number is returned as
 * the text it is written with: as a double, 9007199254740993 would become another number, and two messages one.
 */
export function valueAt(text: string, path: JsonPath): Found {
  let rest = text.trim();
  for (const name of path) {
    if (rest.startsWith("{")) {
      const members = memberSpans(rest);
      if (!members.ok) return members;
      const span = members.spans.get(name);
      if (span === undefined) return { value: undefined };
      rest = rest.slice(span.start, span.end);
    } else if (rest.startsWith("[") && /^(0|[1-9]\d{0,8})$/.test(name)) {
      const items = itemSpans(rest);
      if (!items.ok) return items;
      const span = items.spans[Number(name)];
      if (span === undefined) return { value: undefined };
      rest = rest.slice(span.start, span.end);
    } else {
      return { value: undefined };
    }
  }
  return { value: /^[-\d]/.test(rest) ? rest : (JSON.parse(rest) as unknown) };
}
