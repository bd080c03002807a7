import type { Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";

/** The later messages of the item's key that were taken from pending with it stay there. */
export function leaveFollowers({ settings }: LaneContext, { message: { key }, pending }: Item): void {
  if (key !== undefined && settings.order !== "skip") pending?.grant.stuck.add(key);
}

/** A pending message stays where it is, and so do those of its key that were taken with it. */
export function leave(context: LaneContext, item: Item): void {
  leaveFollowers(context, item);
  if (item.pending !== undefined) item.pending.grant.hindered = true;
}
