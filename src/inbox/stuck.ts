import { orderOf, type Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";

/** Leaves out the messages whose key cannot go on: they stay in pending, or wait together. */
export function withoutStuck(context: LaneContext, items: readonly Item[]): readonly Item[] {
  const { deferral } = context;
  if (deferral === undefined) return items;
  return items.filter((item) => {
    const key = orderOf(item);
    if (key === undefined) return true;
    if (item.pending !== undefined) return !item.pending.grant.stuck.has(key);
    if (!deferral.stash.has(key)) return true;
    deferral.stash.add(item, key, 0);
    return false;
  });
}
