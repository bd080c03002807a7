import { hash } from "node:crypto";
import { identityDigest } from "../message/identity.ts";
import type { Identity } from "../message/message.ts";

const lanes = 64;

/**
 * The key of an effect: as a message's identity is the key for its consumer, an effect's is for its destination. One id
 * may so go to two destinations, as two effects. 32 lower-case hex digits.
 */
export const effectDigest = (destination: string, identity: Identity): string =>
  identityDigest(destination, identity);

/** The lane of an effect, 0 to 63: all of a key are in one, what has no key is spread by its digest. */
export const effectLane = (digest: string, key: string | undefined): number =>
  parseInt((key === undefined ? digest : hash("sha256", key, "hex")).slice(0, 2), 16) % lanes;

/**
 * The id of the effect that a message's handler asks for without naming it: the digest of the message's identity for its
 * consumer, and which of those effects it is. The same whenever the message is handled, as long as its handler asks for
 * its effects in the same order.
 */
export const derivedEffectId = (messageDigest: string, index: number): string => `${messageDigest}-${index}`;

export const isDerivedEffectId = (id: string): boolean => /^[0-9a-f]{32}-\d+$/.test(id);
