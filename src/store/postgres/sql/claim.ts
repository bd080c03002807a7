import type { Claim, ConsumerName } from "../../store.ts";
import type { Statement } from "../../statement.ts";
import { byteaArray, hexArray, textArray } from "../array.ts";

/**
 * The claim of a whole lane. Arbitrated by `message_pkey`, the only index of the table. `order by` gives every claim
 * the same lock order, so that two overlapping batches wait instead of deadlocking. A row that was there, or that a
 * concurrent transaction commits while this one waits, is left out of `returning`; it is never an error (at READ
 * COMMITTED; above that 40001, and the retry sees it).
 */
export const claimSql = (schema: string): string => `
insert into ${schema}.message
  (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
select c.digest, now(), $1::text, c.tenant, c.producer, c.id, c.fingerprint, c.mode, $2::text
  from unnest($3::text::uuid[], $4::text::text[], $5::text::text[], $6::text::text[], $7::text::bytea[], $8::text::text[])
    as c (digest, tenant, producer, id, fingerprint, mode)
 order by c.digest
on conflict (digest) do nothing
returning digest`;

export const claimStatement = (sql: string, name: ConsumerName, claims: readonly Claim[]): Statement => ({
  text: sql,
  values: [name.consumer, name.handlerVersion, ...claimColumns(claims)],
});

/** The six arrays of the claims, in the order that `claim` and `read-seen` expect. */
export const claimColumns = (claims: readonly Claim[]): string[] => [
  hexArray(claims.map((claim) => claim.digest)),
  textArray(claims.map((claim) => claim.tenant)),
  textArray(claims.map((claim) => claim.producer)),
  textArray(claims.map((claim) => claim.id)),
  byteaArray(claims.map((claim) => claim.fingerprint.digest)),
  textArray(claims.map((claim) => claim.fingerprint.mode)),
];

/** PostgreSQL prints a uuid with dashes. */
export const undashed = (uuid: string): string => uuid.replaceAll("-", "");
