/**
 * Keeps the identity for a message whose body goes to quarantine: a redelivery then finds it and is answered "stored".
 * By primary key; an identity that is there stays as it is.
 */
export const reserveIdentitySql = (schema: string): string => `
insert into ${schema}.message
  (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
values ($1::text::uuid, null, $2::text, $3::text, $4::text, $5::text, decode($6::text, 'hex'), $7::text, $8::text)
on conflict (digest) do nothing`;

/**
 * The quarantine entry. Runs after `reserve identity` in one transaction, so its snapshot sees an apply that the
 * reservation waited for: such a message needs no entry, unless it is in conflict with what was applied. The partial
 * unique index quarantine_open makes the same body coming again one entry with a higher count.
 */
export const insertQuarantineSql = (schema: string): string => `
insert into ${schema}.quarantine as q
  (consumer, digest, tenant, producer, message_id, raw_identity, message_key, message_type, headers, payload,
   fingerprint, fingerprint_mode, code, error, attempts, first_failed_at, last_failed_at, handler_version,
   position, message_time, blocking)
select $1::text, $2::text::uuid, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::bytea,
       decode($11::text, 'hex'), $12::text, $13::text, $14::text, $15::int,
       coalesce((select min(failed_at) from ${schema}.attempt where digest = $2::text::uuid), clock_timestamp()),
       clock_timestamp(), $16::text, coalesce($17::text::bigint, nextval('${schema}.arrival')), $18::text, $19::boolean
 where $13::text = 'payload-conflict'
    or not exists (select from ${schema}.message where digest = $2::text::uuid and processed_at is not null)
on conflict (digest, fingerprint) where status = 'open' and digest is not null
do update set deliveries = q.deliveries + 1, last_failed_at = clock_timestamp(), error = excluded.error,
              attempts = greatest(q.attempts, excluded.attempts), handler_version = excluded.handler_version,
              blocking = q.blocking or excluded.blocking
returning id`;

const rowColumns = `
       id::text as id, status, consumer, tenant, producer, message_id, code, error, attempts, deliveries,
       coalesce(octet_length(payload), 0) as payload_bytes, first_failed_at, last_failed_at, handler_version`;

/**
 * Newest first, by `quarantine_pkey` or `quarantine_consumer`; pages by id, so new entries shift nothing. `q.id` is the
 * number; a bare `id` in `order by` would be the text that is selected.
 */
export const listQuarantineSql = (schema: string): string => `
select ${rowColumns}
  from ${schema}.quarantine q
 where ($1::text is null or consumer = $1::text)
   and ($2::text is null or code = $2::text)
   and ($3::text is null or status = $3::text)
   and ($4::text is null or q.id < $4::text::bigint)
 order by q.id desc
 limit $5::int`;

/** By primary key. */
export const showQuarantineSql = (schema: string): string => `
select ${rowColumns}, raw_identity, message_key, message_type, headers,
       encode(payload, 'hex') as payload_hex, encode(fingerprint, 'hex') as fingerprint, fingerprint_mode
  from ${schema}.quarantine
 where id = $1::text::bigint`;
