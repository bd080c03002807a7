import type { FingerprintMode } from "../../../message/fingerprint.ts";
import type { QueryResult, Statement } from "../../statement.ts";
import type { Claim, ConsumerName, NotNew } from "../../store.ts";
import { byteaArray, hexArray, textArray } from "../array.ts";

/**
 * The claim of a whole lane, in one call: `insert … on conflict do nothing`, and for what was not new the committed row,
 * read by a second statement with a newer snapshot (at READ COMMITTED it sees what the insert waited for). Arbitrated by
 * `message_pkey`, the ledger's only index. The rows are inserted in the order of their digests, so that two overlapping
 * batches wait for each other in no circle.
 *
 * A function, because its plans are kept by the session, also behind a pooler where prepared statements are not, and
 * because the lock timeout of the claim then ends with it: as separate statements (show, set, insert, set, select) a
 * single message at a low rate took 1.9 times as long as begin, insert, update, commit by hand.
 */
export const claimSql = (schema: string): string => `
select digest::text as digest, tenant, producer, message_id as id, fingerprint, fingerprint_mode as mode, processed
  from ${schema}.claim($1::text, $2::text, $3::int, $4::text::uuid[], $5::text::text[], $6::text::text[],
                       $7::text::text[], $8::text::bytea[], $9::text::text[])`;

export const claimStatement = (
  sql: string,
  name: ConsumerName,
  lockTimeoutMs: number,
  claims: readonly Claim[],
): Statement => ({
  text: sql,
  values: [
    name.consumer,
    name.handlerVersion,
    lockTimeoutMs,
    hexArray(claims.map((claim) => claim.digest)),
    textArray(claims.map((claim) => claim.tenant)),
    textArray(claims.map((claim) => claim.producer)),
    textArray(claims.map((claim) => claim.id)),
    byteaArray(claims.map((claim) => claim.fingerprint.digest)),
    textArray(claims.map((claim) => claim.fingerprint.mode)),
  ],
});

export interface ClaimRow {
  readonly digest: string;
  readonly tenant: string | null;
  readonly producer: string | null;
  readonly id: string | null;
  readonly fingerprint: string | null;
  readonly mode: string | null;
  readonly processed: boolean | null;
}

/** Rows are matched by key, never by position. */
export const notNewFrom = ({ rows }: Pick<QueryResult<ClaimRow>, "rows">): readonly NotNew[] =>
  rows.map(({ digest, tenant, producer, id, fingerprint, mode, processed }) => ({
    // PostgreSQL prints a uuid with dashes.
    digest: digest.replaceAll("-", ""),
    seen:
      id === null || tenant === null || producer === null || fingerprint === null || mode === null
        ? undefined
        : {
            tenant,
            producer,
            id,
            fingerprint,
            fingerprintMode: mode as FingerprintMode,
            processed: processed === true,
          },
  }));
