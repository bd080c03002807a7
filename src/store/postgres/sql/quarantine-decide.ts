import { decisionSql } from "./decisions.ts";
import { quarantineFits } from "./quarantine-read.ts";

/**
 * Locks entries, always in the order of their ids, and returns those still open. Whoever else decides on one of them
 * waits here, and then sees that it is decided. By primary key.
 */
const lockEntriesSql = (schema: string): string => `
select q.id::text as id
  from ${schema}.quarantine q
 where q.id = any ($1::text::bigint[]) and q.status = 'open'
 order by q.id
   for update`;

/**
 * Locks the identities of entries, by primary key: nobody applies, retries or repairs one of them until this
 * transaction ends, and the statements behind it see what was committed before.
 */
const lockIdentitiesSql = (schema: string): string => `
select from ${schema}.message m
 where m.digest in (select q.digest from ${schema}.quarantine q where q.id = any ($1::text::bigint[]))
 order by m.digest
   for update`;

/**
 * Gives locked entries back to pending at their places, and marks those that went there. The ledger then has the body
 * that goes, so that its redelivery is known. What is late goes only where that was meant. By primary keys, pending by
 * its own.
 */
const retryEntriesSql = (schema: string): string => `
with fit as materialized (
  select array_agg(q.id) as ids
    from ${schema}.quarantine q
   where q.id = any ($1::text::bigint[]) and q.status = 'open' and (q.code = 'late') = $3::boolean
), moved as materialized (
  select ${schema}.requeue(fit.ids) as id from fit
), known as (
  update ${schema}.message m
     set fingerprint = q.fingerprint, fingerprint_mode = q.fingerprint_mode
    from ${schema}.quarantine q
   where q.id in (select moved.id from moved) and m.digest = q.digest
     and (m.fingerprint <> q.fingerprint or m.fingerprint_mode <> q.fingerprint_mode)
)
update ${schema}.quarantine q
   set status = 'retried', decision_id = $2::text::bigint, decided_at = clock_timestamp()
  from moved
 where q.id = moved.id
returning q.id::text as id`;

/** By primary key. */
const discardEntriesSql = (schema: string): string => `
update ${schema}.quarantine q
   set status = 'discarded', decision_id = $2::text::bigint, decided_at = clock_timestamp()
 where q.id = any ($1::text::bigint[]) and q.status = 'open'
returning q.id::text as id`;

/** By primary keys. */
const releaseKeysSql = (schema: string): string => `
select ${schema}.release_keys($1::text::bigint[])`;

/** Why one entry cannot be given back: by primary keys. */
const whyNotSql = (schema: string): string => `
select q.status, d.decided_by, d.kind, q.decided_at, q.digest is not null as named, q.message_id, q.code,
       m.processed_at, m.digest is not null as kept,
       exists (select from ${schema}.pending p where p.digest = coalesce($2::text::uuid, q.digest)) as pending
  from ${schema}.quarantine q
  left join ${schema}.decision d on d.id = q.decision_id
  left join ${schema}.ledger m on m.digest = coalesce($2::text::uuid, q.digest)
 where q.id = $1::text::bigint`;

/**
 * Locks the identity that a repair is to be handled under, by primary key, and tells whether it may be: it is new, or
 * it is the entry's own and nothing is applied.
 */
const lockIdentitySql = (schema: string): string => `
select m.processed_at is not null as processed
  from ${schema}.message m
 where m.digest = $1::text::uuid
   for update`;

/** Gives another body back in place of a locked entry's own, at the entry's place. */
const insertRepairedSql = (schema: string): string => `
insert into ${schema}.pending
  (digest, position, lane, consumer, tenant, producer, message_id, message_key, message_type, message_time, headers,
   payload, payload_key_id, fingerprint, fingerprint_mode, last_code, last_error)
select $2::text::uuid, q.position, ${schema}.lane_of($6::text, $2::text::uuid), q.consumer, $3::text, $4::text, $5::text,
       $6::text, $7::text, q.message_time, $8::text, $9::bytea, $10::text, decode($11::text, 'hex'), $12::text, q.code,
       q.error
  from ${schema}.quarantine q
 where q.id = $1::text::bigint
on conflict (digest) do nothing
returning ${schema}.look_again(array[digest])`;

/** Beside the entry's own body. */
const insertRepairSql = (schema: string): string => `
insert into ${schema}.repair
  (entry_id, digest, tenant, producer, message_id, payload, payload_key_id, fingerprint, fingerprint_mode)
values ($1::text::bigint, $2::text::uuid, $3::text, $4::text, $5::text, $6::bytea, $7::text, decode($8::text, 'hex'),
        $9::text)`;

/** By primary key. */
const markRepairedSql = (schema: string): string => `
update ${schema}.quarantine
   set status = 'repaired', decision_id = $2::text::bigint, decided_at = clock_timestamp()
 where id = $1::text::bigint`;

/**
 * Which entries may go: decided on so long ago, and their message is not in pending any more, where its budget is counted
 * from that decision on.
 */
const purgeable = (schema: string): string => `
       q.status <> 'open' and q.decided_at < clock_timestamp() - $1::text::bigint * interval '1 millisecond'
   and ($2::text is null or q.consumer = $2::text)
   and not exists (select from ${schema}.pending p
                    where p.digest = coalesce((select r.digest from ${schema}.repair r where r.entry_id = q.id), q.digest))`;

/** The audit row of a purge that is about to begin. */
const recordPurgeSql = (schema: string): string => `
insert into ${schema}.decision (kind, decided_by, reason, filter, matched)
values ('purge', $1::text, $2::text, $3::text, $4::int)
returning id::text as id`;

/**
 * At most 1,000 entries with their repairs, by quarantine_decided_at, and their number in the purge's audit row. One
 * statement: what is counted is removed.
 */
const purgeQuarantineSql = (schema: string): string => `
with old as (
  select q.id from ${schema}.quarantine q
   where ${purgeable(schema)}
   order by q.decided_at
   limit 1000
     for update skip locked
), repairs as (
  delete from ${schema}.repair r using old where r.entry_id = old.id
), gone as (
  delete from ${schema}.quarantine q using old where q.id = old.id returning 1
), counted as (
  select count(*)::int as entries from gone
), audited as (
  update ${schema}.decision d
     set decided = d.decided + c.entries, finished_at = case when c.entries = 0 then clock_timestamp() end
    from counted c
   where d.id = $3::text::bigint
)
select entries from counted`;

/** By quarantine_decided_at. */
const countPurgeableSql = (schema: string): string => `
select count(*)::int as entries
  from ${schema}.quarantine q
 where ${purgeable(schema)}`;

/**
 * An entry of an export. Not if it was imported before (quarantine_import), if an open entry has this body
 * (quarantine_open), or if its identity is applied with this very body.
 */
const importEntrySql = (schema: string): string => `
insert into ${schema}.quarantine
  (consumer, digest, tenant, producer, message_id, raw_identity, message_key, message_type, message_time, headers,
   payload, payload_key_id, fingerprint, fingerprint_mode, code, error, error_group, error_shape, payload_bytes,
   attempts, deliveries, first_failed_at, last_failed_at, handler_version, import_key)
select $1::text, $2::text::uuid, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::text,
       $11::bytea, $12::text, decode($13::text, 'hex'), $14::text, $15::text, $16::text, $17::text, $18::text, $19::int,
       $20::int, $21::int, $22::text::timestamptz, $23::text::timestamptz, $24::text, $25::text
on conflict do nothing
returning id::text as id`;

/** By primary key: whether an identity is applied, and with which body. */
const findIdentitySql = (schema: string): string => `
select m.processed_at is not null as processed, encode(m.fingerprint, 'hex') as fingerprint, m.fingerprint_mode
  from ${schema}.ledger m
 where m.digest = $1::text::uuid`;

/** The statements that decide on quarantine. */
export const quarantineDecideSql = (schema: string) => ({
  decisions: decisionSql(schema, "decision", "quarantine", quarantineFits),
  lockEntries: lockEntriesSql(schema),
  lockIdentities: lockIdentitiesSql(schema),
  retryEntries: retryEntriesSql(schema),
  discardEntries: discardEntriesSql(schema),
  releaseKeys: releaseKeysSql(schema),
  whyNot: whyNotSql(schema),
  lockIdentity: lockIdentitySql(schema),
  insertRepaired: insertRepairedSql(schema),
  insertRepair: insertRepairSql(schema),
  markRepaired: markRepairedSql(schema),
  recordPurge: recordPurgeSql(schema),
  purgeQuarantine: purgeQuarantineSql(schema),
  countPurgeable: countPurgeableSql(schema),
  importEntry: importEntrySql(schema),
  findIdentity: findIdentitySql(schema),
});
