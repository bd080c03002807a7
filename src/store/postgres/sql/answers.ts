/** By primary key. The first answer stays: it is the one that was given. */
export const keepAnswerSql = (schema: string): string => `
insert into ${schema}.answer (digest, consumer, request, status, headers, body)
values ($1::text::uuid, $2::text, $3::text, $4::smallint, $5::text, $6::bytea)
on conflict (digest) do nothing`;

/** By primary key. */
export const findAnswerSql = (schema: string): string => `
select request, status, headers, encode(body, 'hex') as body_hex
  from ${schema}.answer
 where digest = $1::text::uuid`;

/**
 * Shows, until the transaction ends, that a request is running (the second lock) and with which body (the first). Both
 * belong to the transaction, so they work through a transaction-mode pooler and vanish with a process that dies.
 */
export const holdRequestSql = (): string => `
select pg_advisory_xact_lock($1::text::bigint), pg_advisory_xact_lock($2::text::bigint)`;

/**
 * Whether a request of the same key is running with another body. The lock that says "running" is taken after the one
 * that names the body and asked for before it, so that one of the same body is never taken for another.
 */
export const otherRequestSql = (): string => `
select not pg_try_advisory_xact_lock($2::text::bigint) as running,
       pg_try_advisory_xact_lock($1::text::bigint) as other_body`;
