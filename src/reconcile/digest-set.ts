/** A set of identity digests in 16 bytes a slot: a million of them fit in 32 MB, where texts would take 100. */
export interface DigestSet {
  readonly size: number;
  /** Returns whether it was new. Throws a RangeError beyond the capacity. */
  add(digest: string): boolean;
  has(digest: string): boolean;
}

const wordsOf = (digest: string): readonly [number, number, number, number] => [
  parseInt(digest.slice(0, 8), 16),
  parseInt(digest.slice(8, 16), 16),
  parseInt(digest.slice(16, 24), 16),
  parseInt(digest.slice(24, 32), 16),
];

/** A set for at most `capacity` digests of 32 hex digits; open addressing, at most half full. */
export function createDigestSet(capacity: number): DigestSet {
  const slots = 2 ** Math.ceil(Math.log2(Math.max(16, capacity * 2)));
  const words = new Uint32Array(slots * 4);
  let size = 0;
  let holdsZero = false;

  /** The place of the digest, or of the empty slot where it belongs. */
  function find(a: number, b: number, c: number, d: number): number {
    // The last word: the first ones are the same in all of a bucket.
    for (let slot = d % slots; ; slot = (slot + 1) % slots) {
      const at = slot * 4;
      const [w, x, y, z] = [words[at], words[at + 1], words[at + 2], words[at + 3]];
      if ((w === a && x === b && y === c && z === d) || (w === 0 && x === 0 && y === 0 && z === 0)) return at;
    }
  }

  return {
    get size() {
      return size;
    },
    add(digest) {
      const [a, b, c, d] = wordsOf(digest);
      if ((a | b | c | d) === 0) {
        if (holdsZero) return false;
        holdsZero = true;
        size += 1;
        return true;
      }
      const at = find(a, b, c, d);
      if (words[at] === a && words[at + 1] === b && words[at + 2] === c && words[at + 3] === d) return false;
      if (size >= capacity) throw new RangeError(`The set is full: ${capacity} digests.`);
      words.set([a, b, c, d], at);
      size += 1;
      return true;
    },
    has(digest) {
      const [a, b, c, d] = wordsOf(digest);
      if ((a | b | c | d) === 0) return holdsZero;
      const at = find(a, b, c, d);
      return words[at] === a && words[at + 1] === b && words[at + 2] === c && words[at + 3] === d;
    },
  };
}
