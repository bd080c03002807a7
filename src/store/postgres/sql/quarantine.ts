/**
 * Keeps the identity for a message whose body goes to quarantine: a redelivery then finds it and is answered "stored".
 * By primary key; an identity that is there, in either generation, stays as it is, and no row is returned.
 */
export const reserveIdentitySql = (schema: string): string => `
select 1 where ${schema}.reserve_identity($1::text::uuid, $2::text, $3::text, $4::text, $5::text,
                                          decode($6::text, 'hex'), $7::text, $8::text)`;

/**
 * The same for a message that may have been sent before the horizon, in milliseconds since 1970: `late` if so and it was
 * not there. The identity is kept then, too; whoever does not want it rolls back. The horizon is read behind the insert:
 * whoever inserts where something was deleted sees the mark of it. At read committed.
 */
export const reserveSentSql = (schema: string): string => `
select case when not ${schema}.reserve_identity($1::text::uuid, $2::text, $3::text, $4::text, $5::text,
                                                decode($6::text, 'hex'), $7::text, $8::text) then 'known'
            when pg_sequence_last_value('${schema.replaceAll("'", "''")}.horizon_mark'::regclass) > $9::text::bigint
                 and ${schema}.suspects($2::text, array[$1::text::uuid], array[$4::text], array[$9::text::bigint]) is not null
              then 'late'
            else 'new' end as reserved`;

/**
 * The quarantine entry. Runs after `reserve identity` in one transaction, so its snapshot sees an apply that the
 * reservation waited for: such a message needs no entry, unless it is in conflict with what was applied. The partial
 * unique index quarantine_open makes the same body coming again one entry with a higher count. What an entry is "again
 * of" is found by quarantine_digest and repair_digest; failures from before that decision are the earlier entry's.
 */
export const insertQuarantineSql = (schema: string): string => `
with before as (
  select greatest(
           (select max(o.id) from ${schema}.quarantine o where o.digest = $2::text::uuid and o.status = 'retried'),
           (select max(r.entry_id) from ${schema}.repair r where r.digest = $2::text::uuid)) as id
   where $13::text <> 'payload-conflict'
)
insert into ${schema}.quarantine as q
  (consumer, digest, tenant, producer, message_id, raw_identity, message_key, message_type, headers, payload,
   fingerprint, fingerprint_mode, code, error, attempts, first_failed_at, last_failed_at, handler_version,
   position, message_time, blocking, error_group, error_shape, payload_bytes, payload_key_id, again_of)
select $1::text, $2::text::uuid, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::bytea,
       decode($11::text, 'hex'), $12::text, $13::text, $14::text, $15::int,
       coalesce((select min(failed_at) from ${schema}.attempt where digest = $2::text::uuid
                    and failed_at > coalesce((select o.decided_at from ${schema}.quarantine o, before b where o.id = b.id),
                                             '-infinity')),
                clock_timestamp()),
       clock_timestamp(), $16::text, coalesce($17::text::bigint, nextval('${schema}.arrival')), $18::text, $19::boolean,
       $20::text, $21::text, $22::int, $23::text, (select b.id from before b)
 where $13::text = 'payload-conflict'
    or not exists (select from ${schema}.ledger where digest = $2::text::uuid and processed_at is not null)
on conflict (digest, fingerprint) where status = 'open' and digest is not null
do update set deliveries = q.deliveries + 1, last_failed_at = clock_timestamp(), error = excluded.error,
              error_group = excluded.error_group, error_shape = excluded.error_shape,
              attempts = greatest(q.attempts, excluded.attempts), handler_version = excluded.handler_version,
              blocking = q.blocking or excluded.blocking
returning id`;
