import type { LaneTransaction } from "../store/store.ts";
import { busy, type Doubtful } from "./fail.ts";
import { settle, type Item } from "./item.ts";
import { judgeSeen } from "./judge-seen.ts";
import type { LaneContext } from "./lane-context.ts";
import { leave } from "./leave.ts";
import { storedMessage } from "./put-off.ts";

/** What a transaction has claimed. */
export interface Claimed {
  /** In order: to be handled now. */
  readonly fresh: readonly Item[];
  /** Stored behind their key, which waits. */
  readonly behind: readonly Item[];
  /** Both, in order. */
  readonly all: readonly Item[];
}

/** Claims all items; settles those that were taken before and collects those that a person must decide on. */
export async function claimItems(
  context: LaneContext,
  tx: LaneTransaction,
  items: readonly Item[],
  doubtful: Doubtful[],
): Promise<{ readonly fresh: readonly Item[]; readonly keysParked: boolean }> {
  const { notNew, keysParked } = await tx.claim(items);
  if (notNew.length === 0) return { fresh: items, keysParked };
  const taken = new Map(notNew.map((one) => [one.digest, one]));
  const fresh: Item[] = [];
  for (const item of items) {
    const met = taken.get(item.digest);
    const judgement = met === undefined ? "new" : judgeSeen(item, met);
    if (judgement === "new") fresh.push(item);
    else if (judgement === "conflict" || judgement === "late") doubtful.push({ item, doubt: judgement });
    else if (judgement === "gone") busy(context, item, "busy");
    else settle(item, { outcome: judgement, settle: "ack" });
  }
  return { fresh, keysParked };
}

/** Stores those behind their key whose key is parked. */
export async function storeParked(
  context: LaneContext,
  tx: LaneTransaction,
  claims: { readonly fresh: readonly Item[]; readonly keysParked: boolean },
): Promise<Claimed> {
  const claimed = await findParked(context, tx, claims);
  if (claimed.behind.length > 0) await tx.storeBehind(claimed.behind.map(storedMessage));
  return claimed;
}

/** Those whose key is parked; it stays so until the transaction ends. Only asked where the consumer has parked keys at all. */
export async function findParked(
  context: LaneContext,
  tx: LaneTransaction,
  { fresh, keysParked }: { readonly fresh: readonly Item[]; readonly keysParked: boolean },
): Promise<Claimed> {
  if (!keysParked || context.settings.order === "skip") return { fresh, behind: [], all: fresh };
  const keys = fresh.flatMap(({ message: { key } }) => (key === undefined ? [] : [key]));
  if (keys.length === 0) return { fresh, behind: [], all: fresh };
  const parked = await tx.parkedKeys(keys);
  const isParked = ({ message: { key } }: Item): boolean => key !== undefined && parked.has(key);
  const behind = fresh.filter(isParked);
  return { fresh: fresh.filter((item) => !isParked(item)), behind, all: fresh };
}

/** Locks pending items under their leases; leaves those that are not this worker's any more. */
export async function holdItems(
  context: LaneContext,
  tx: LaneTransaction,
  items: readonly Item[],
): Promise<Claimed> {
  const gone = await tx.hold(
    items.flatMap((item) => (item.pending ? [{ ...item, lease: item.pending.grant }] : [])),
  );
  if (gone.size === 0) return { fresh: items, behind: [], all: items };
  for (const item of items) if (gone.has(item.digest)) leave(context, item);
  const fresh = items.filter(({ digest }) => !gone.has(digest));
  return { fresh, behind: [], all: fresh };
}
