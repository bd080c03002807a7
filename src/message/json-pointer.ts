import { InboxError } from "../errors.ts";
import { isStorableText } from "./text-rules.ts";
import { showValue } from "./show-value.ts";

/** A set of JSON pointers as a tree of their reference tokens. `leftOut` marks the end of a pointer. */
export interface PointerTree {
  readonly children: ReadonlyMap<string, PointerTree>;
  readonly leftOut: boolean;
}

interface MutableTree {
  readonly children: Map<string, MutableTree>;
  leftOut: boolean;
}

/** The reference tokens of a JSON pointer (RFC 6901). Throws `invalid-option`, naming `option`, for anything else. */
export function parsePointer(pointer: unknown, option: string): string[] {
  const invalid = (rule: string): InboxError =>
    new InboxError("invalid-option", `${option}: ${showValue(pointer)} ${rule}`);
  if (typeof pointer !== "string") throw invalid("is no JSON pointer: it must be a text such as /sentAt.");
  if (pointer === "") throw invalid("means the whole document; it must begin with / and name a part of it.");
  if (!pointer.startsWith("/")) throw invalid("is no JSON pointer: it must begin with /.");
  if (/~(?![01])/.test(pointer)) throw invalid("is no JSON pointer: after ~ there must be 0 or 1.");
  if (!isStorableText(pointer)) throw invalid("must hold no NUL and no lone surrogate.");
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The pointers in code unit order, without repeats and without those that lie below another of them. */
export function minimalPointers(pointers: readonly string[]): string[] {
  const sorted = [...new Set(pointers)].sort();
  const kept = new Set<string>();
  for (const pointer of sorted) {
    let covered = false;
    for (let i = pointer.indexOf("/", 1); i !== -1 && !covered; i = pointer.indexOf("/", i + 1)) {
      covered = kept.has(pointer.slice(0, i));
    }
    if (!covered) kept.add(pointer);
  }
  return [...kept];
}

/** The tree of the given pointers. Throws `invalid-option` for what is no JSON pointer. */
export function pointerTree(pointers: readonly string[], option: string): PointerTree {
  const root: MutableTree = { children: new Map(), leftOut: false };
  for (const pointer of pointers) {
    let node = root;
    for (const token of parsePointer(pointer, option)) {
      let child = node.children.get(token);
      if (child === undefined) node.children.set(token, (child = { children: new Map(), leftOut: false }));
      node = child;
    }
    node.leftOut = true;
  }
  return root;
}
