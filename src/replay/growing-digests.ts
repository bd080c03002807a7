import { createDigestSet, type DigestSet } from "../reconcile/digest-set.ts";

/** A set of digests that nobody can tell the size of beforehand; at most 64 bytes each. */
export interface GrowingDigests {
  /** Returns whether it was new. */
  add(digest: string): boolean;
}

const firstCapacity = 65_536;

/** Sets of doubling size: what one has no room for goes to the next. */
export function growingDigests(capacity: number = firstCapacity): GrowingDigests {
  const full: DigestSet[] = [];
  let room = capacity;
  let open = createDigestSet(room);
  return {
    add(digest) {
      if (full.some((set) => set.has(digest))) return false;
      if (open.size >= room && !open.has(digest)) {
        full.push(open);
        room *= 2;
        open = createDigestSet(room);
      }
      return open.add(digest);
    },
  };
}
