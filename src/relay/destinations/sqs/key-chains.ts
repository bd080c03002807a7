/** Items of which no two of a key may be on their way at once. */
export interface KeyChains<Item> {
  /** The next item that may go, or `undefined` while there is none. */
  next(): Item | undefined;
  /** It arrived: the next of its key may go. */
  arrived(item: Item): void;
  /** It did not: nothing more of its key goes. */
  failed(item: Item): void;
}

/** Chains in the order of their first items; an item without a key is a chain of its own. */
export function keyChains<Item extends { readonly key: string | undefined }>(
  items: readonly Item[],
): KeyChains<Item> {
  const ready: Item[] = [];
  const behind = new Map<string, Item[]>();
  for (const item of items) {
    const { key } = item;
    const chain = key === undefined ? undefined : behind.get(key);
    if (chain !== undefined) {
      chain.push(item);
      continue;
    }
    if (key !== undefined) behind.set(key, []);
    ready.push(item);
  }
  ready.reverse();
  return {
    next: () => ready.pop(),
    arrived({ key }) {
      const following = key === undefined ? undefined : behind.get(key)?.shift();
      if (following !== undefined) ready.unshift(following);
    },
    failed({ key }) {
      if (key !== undefined) behind.delete(key);
    },
  };
}
