/**
 * One failed attempt, and how many there are now. `attempt_digest` serves the count. The count is of the statement's
 * own snapshot, so two attempts that fail at the same moment may both miss the other's row: then one attempt more is
 * allowed, never one fewer.
 */
export const recordAttemptSql = (schema: string): string => `
with added as (
  insert into ${schema}.attempt (digest, consumer, tenant, producer, message_id, code, error, handler_version)
  values ($1::text::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text)
  returning 1
)
select (select count(*) from ${schema}.attempt where digest = $1::text::uuid)::int + (select count(*) from added)::int
    as attempts`;
