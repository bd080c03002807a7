import { recordOf, type Item } from "./item.ts";

/**
 * Messages of a source whose key cannot go on now because another process holds a claim of it, or because the worker is
 * stopping. They are kept in order and enter their lane again together, so that none overtakes another. Bounded by what
 * is in hand.
 */
export interface Stash {
  has(key: string): boolean;
  /** Keeps a message behind those of its key; the first one decides how long, in milliseconds. */
  add(item: Item, key: string, delayMs: number): void;
  /** Takes everything out, in order, for a stop. */
  takeAll(): Item[];
}

/** `again` lets the messages of a key go on; what it is given empties the stash of them. */
export function createStash(
  again: (key: string, take: () => readonly Item[]) => void,
  stopping: AbortSignal,
): Stash {
  const waiting = new Map<string, { readonly items: Item[]; readonly timer: NodeJS.Timeout | undefined }>();

  function takeKey(key: string): readonly Item[] {
    const { items } = waiting.get(key) ?? { items: [] };
    waiting.delete(key);
    // One that came too early must not keep back what it waits for.
    return items.sort(byPlace);
  }

  return {
    has: (key) => waiting.has(key),
    add(item, key, delayMs) {
      const known = waiting.get(key);
      if (known !== undefined) {
        known.items.push(item);
        return;
      }
      // Until its lane asks for them the key counts as waiting: what the lane has in hand must not overtake them.
      const goOn = (): void => {
        if (!stopping.aborted) again(key, () => takeKey(key));
      };
      waiting.set(key, { items: [item], timer: stopping.aborted ? undefined : setTimeout(goOn, delayMs) });
    },
    takeAll() {
      const items: Item[] = [];
      for (const { items: own, timer } of waiting.values()) {
        clearTimeout(timer);
        items.push(...own);
      }
      waiting.clear();
      return items;
    },
  };
}

/** Records of a log by their offsets; what has none stays as it is, as the sort is stable. */
function byPlace(a: Item, b: Item): number {
  const first = recordOf(a)?.record.offset;
  const second = recordOf(b)?.record.offset;
  return first === undefined || second === undefined ? 0 : Number(first - second);
}
