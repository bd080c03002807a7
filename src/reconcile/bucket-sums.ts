import { hash } from "node:crypto";
import type { Fingerprint } from "../message/fingerprint.ts";

/** Messages are compared in so many buckets, told by the first two bytes of the identity's digest. */
export const bucketCount = 65_536;

/** The bucket of an identity's digest (32 hex digits). */
export const bucketOf = (digest: string): number => parseInt(digest.slice(0, 4), 16);

/**
 * What is known of the messages of each bucket without keeping one: how many, and the sum of a 128-bit digest of each.
 * A sum does not depend on the order. An exclusive or would not either, but a message listed twice would vanish from it,
 * and with 128 messages of his choice anybody can make it what he likes (linear equations). Against a sum that takes
 * digests he can compute beforehand; they are salted anew for each comparison, so there are none.
 */
export interface BucketSums {
  readonly counts: Uint32Array;
  /** The sums of the digests' first and last 64 bits, each modulo 2^64. */
  readonly high: BigUint64Array;
  readonly low: BigUint64Array;
}

export const emptySums = (): BucketSums => ({
  counts: new Uint32Array(bucketCount),
  high: new BigUint64Array(bucketCount),
  low: new BigUint64Array(bucketCount),
});

/**
 * Adds messages to sums: SHA-256 over salt, identity digest and, where payloads are compared, the fingerprint's mode, a
 * NUL (which no mode holds) and the fingerprint. In SQL: `appliedSumsSql`.
 */
export function createAdder(
  sums: BucketSums,
  salt: Uint8Array,
): (digest: string, fingerprint: Fingerprint | undefined) => void {
  const head = salt.length + 16;
  // A mode has at most 1,024 bytes.
  const buffer = Buffer.alloc(head + 1_024 + 1 + 32);
  buffer.set(salt);
  return (digest, fingerprint) => {
    buffer.write(digest, salt.length, "hex");
    let length = head;
    if (fingerprint !== undefined) {
      length += buffer.write(fingerprint.mode, length, "utf8");
      buffer[length++] = 0;
      length += buffer.write(fingerprint.digest, length, "hex");
    }
    const salted = hash("sha256", buffer.subarray(0, length), "buffer");
    const bucket = bucketOf(digest);
    sums.counts[bucket]! += 1;
    sums.high[bucket]! += salted.readBigUInt64BE(0);
    sums.low[bucket]! += salted.readBigUInt64BE(8);
  };
}

/** Whether a bucket holds the same messages on both sides. */
export const sameBucket = (a: BucketSums, b: BucketSums, bucket: number): boolean =>
  a.counts[bucket] === b.counts[bucket] &&
  a.high[bucket] === b.high[bucket] &&
  a.low[bucket] === b.low[bucket];
