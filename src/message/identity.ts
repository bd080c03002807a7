import { hash } from "node:crypto";
import type { Identity } from "./message.ts";

// Every part is written with its length before it, so that no two different names give one text: neither
// ("a|b", "c") and ("a", "b|c"), nor a part that itself looks like a length. In SQL:
//   substr(encode(sha256(convert_to(octet_length(consumer) || ':' || consumer || octet_length(tenant) || ':' || tenant
//     || octet_length(producer) || ':' || producer || octet_length(id) || ':' || id, 'utf8')), 'hex'), 1, 32)::uuid
const part = (text: string): string => `${Buffer.byteLength(text)}:${text}`;

const digest = (prefix: string, id: string): string => hash("sha256", prefix + part(id), "hex").slice(0, 32);

/**
 * The key of one message for one consumer: the first 16 bytes of SHA-256 over the length-prefixed (consumer, tenant,
 * producer, id), as 32 lower-case hex digits, which PostgreSQL reads as a `uuid`. The parts must have been checked
 * (`createMessage` does): lone surrogates would merge.
 */
export const identityDigest = (consumer: string, identity: Identity): string =>
  digest(part(consumer) + part(identity.tenant) + part(identity.producer), identity.id);

/** `identityDigest` for one consumer and many messages: remembers the prefix while tenant and producer stay the same. */
export function createIdentityDigest(consumer: string): (identity: Identity) => string {
  const start = part(consumer);
  let tenant = "";
  let producer = "";
  let prefix = start + part("") + part("");
  return (identity) => {
    if (identity.producer !== producer || identity.tenant !== tenant) {
      ({ tenant, producer } = identity);
      prefix = start + part(tenant) + part(producer);
    }
    return digest(prefix, identity.id);
  };
}
