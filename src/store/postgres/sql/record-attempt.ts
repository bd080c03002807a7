/**
 * Failed attempts of the message since it was last given back from quarantine, which begins its budget anew. Both
 * tables by their indexes on the digest.
 */
const attemptsThatCount = (schema: string): string => `
  from ${schema}.attempt
 where digest = $1::text::uuid
   and failed_at > coalesce((select max(q.decided_at) from ${schema}.quarantine q
                              where q.digest = $1::text::uuid and q.status in ('retried', 'repaired')), '-infinity')`;

/**
 * One failed attempt, how many there are now, and the milliseconds since the first. The count is of the statement's own
 * snapshot, so two attempts that fail at the same moment may both miss the other's row: then one attempt more is
 * allowed, never one fewer.
 */
export const recordAttemptSql = (schema: string): string => `
with added as (
  insert into ${schema}.attempt (digest, consumer, tenant, producer, message_id, code, error, handler_version)
  values ($1::text::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text)
  returning 1
)
select count(*)::int + (select count(*) from added)::int as attempts,
       coalesce(extract(epoch from clock_timestamp() - min(failed_at)) * 1000, 0)::float8 as elapsed_ms
${attemptsThatCount(schema)}`;

/** The same without an attempt more, for a failure that does not count. */
export const countAttemptsSql = (schema: string): string => `
select count(*)::int as attempts, 0::float8 as elapsed_ms
${attemptsThatCount(schema)}`;
