import type { Claim } from "../../store.ts";
import type { Statement } from "../../statement.ts";
import { hexArray } from "../array.ts";

/**
 * What is committed for digests that could not be claimed: one primary-key probe each. At READ COMMITTED it sees what
 * the claim waited for. The readable columns come along because two identities may in principle share a digest.
 */
export const readSeenSql = (schema: string): string => `
select digest::text as digest, tenant, producer, message_id as id, encode(fingerprint, 'hex') as fingerprint,
       fingerprint_mode as mode, processed_at is not null as processed
  from ${schema}.message
 where digest = any ($1::text::uuid[])`;

export interface SeenRow {
  readonly digest: string;
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
  readonly fingerprint: string;
  readonly mode: string;
  readonly processed: boolean;
}

export const readSeenStatement = (sql: string, claims: readonly Claim[]): Statement => ({
  text: sql,
  values: [hexArray(claims.map((claim) => claim.digest))],
});
