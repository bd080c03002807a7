import { parsePointer } from "../message/json-pointer.ts";
import { itemSpans, memberSpans, type JsonSpan } from "../message/json-spans.ts";
import { readJson } from "../message/json-document.ts";

/** Hides named parts of payloads and headers before a person sees them. */
export interface Redaction {
  /**
   * The payload's text with `"***"` in place of each named part, otherwise as it is written; `undefined` where the named
   * parts cannot be found for sure (no JSON, a key twice on the way): then nothing of it may be shown.
   */
  payload(text: string): string | undefined;
  headers(headers: Readonly<Record<string, string>>): Record<string, string>;
  /** Whether any part of payloads is named. */
  readonly namesParts: boolean;
}

export interface RedactionOptions {
  /** JSON pointers (RFC 6901) of what is hidden in payloads. As a whole token, `*` stands for every member or item. */
  readonly redact?: readonly string[] | undefined;
  /** Names of headers that are hidden besides those that carry credentials (authorization, cookie, …). */
  readonly redactHeaders?: readonly string[] | undefined;
}

interface Tree {
  readonly children: Map<string, Tree>;
  hidden: boolean;
}

const mask = '"***"';

const credentials = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];

/** Throws `invalid-option` for what is no JSON pointer. */
export function createRedaction({ redact = [], redactHeaders = [] }: RedactionOptions): Redaction {
  const root: Tree = { children: new Map(), hidden: false };
  redact.forEach((pointer, index) => {
    let node = root;
    for (const token of parsePointer(pointer, `redact[${index}]`)) {
      let child = node.children.get(token);
      if (child === undefined) node.children.set(token, (child = { children: new Map(), hidden: false }));
      node = child;
    }
    node.hidden = true;
  });
  const names = new Set([...credentials, ...redactHeaders].map((name) => name.toLowerCase()));
  return {
    namesParts: root.children.size > 0,
    payload(text) {
      if (root.children.size === 0) return text;
      return typeof readJson(text) === "string" ? undefined : hide(text, [root]);
    },
    headers: (headers) =>
      Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, names.has(name.toLowerCase()) ? "***" : value]),
      ),
  };
}

/** The text of a JSON value without what the trees name in it. */
function hide(text: string, trees: readonly Tree[]): string | undefined {
  if (trees.some(({ hidden }) => hidden)) return mask;
  const parts = partsOf(text);
  if (parts === undefined) return undefined;
  let shown = "";
  let at = 0;
  for (const [token, { start, end }] of parts) {
    const inner = trees.flatMap(({ children }) =>
      [children.get(token), children.get("*")].filter((tree) => tree !== undefined),
    );
    if (inner.length === 0) continue;
    const hidden = hide(text.slice(start, end), inner);
    if (hidden === undefined) return undefined;
    shown += text.slice(at, start) + hidden;
    at = end;
  }
  return shown + text.slice(at);
}

/** The members or items in the order of the text; none for other values, `undefined` where a key is there twice. */
function partsOf(text: string): Iterable<readonly [string, JsonSpan]> | undefined {
  const members = memberSpans(text);
  if (members.ok) return members.spans;
  const items = itemSpans(text);
  if (items.ok) return items.spans.map((span, index) => [String(index), span] as const);
  return /^\ufeff?\s*[{[]/.test(text) ? undefined : [];
}
