import { decisionSql } from "./decisions.ts";

/** What operators ask of the outbox, with the schema's name filled in once. */
export type OutboxOperatorSql = ReturnType<typeof outboxOperatorSql>;

export const outboxOperatorSql = (schema: string) => ({
  recordRefusals: recordRefusalsSql(schema),
  listRefused: listRefusedSql(schema),
  refusalsOf: refusalsOfSql(schema),
  showRefused: showRefusedSql(schema),
  groupRefused: groupRefusedSql(schema),
  countRefused: countRefusedSql(schema),
  whyNotRefused: whyNotRefusedSql(schema),
  decisions: decisionSql(schema, "outbox_decision", "outbox_refusal", refusedFits),
  lockEffectLanes: lockEffectLanesSql(schema),
  lockRefusals: lockRefusalsSql(schema),
  retryEffects: retryEffectsSql(schema),
  discardEffects: discardEffectsSql(schema),
  advanceKeys: advanceKeysSql(schema),
  repairEffect: repairEffectSql(schema),
});

/**
 * The history of effects that a settle has just set aside, by their primary keys, in the transaction that did. One that
 * has an open entry gets no second one: the same verdict was written twice.
 */
const recordRefusalsSql = (schema: string): string => `
insert into ${schema}.outbox_refusal
  (position, attempts, payload_bytes, asked_at, refused_at, digest, again_of, holds_key, destination, tenant, producer,
   effect_id, effect_key, effect_type, code, error_group, error, error_shape)
select o.position, o.attempts,
       greatest(coalesce(octet_length(o.payload), 0) - case when o.payload_key_id is null then 0 else $5::int end, 0),
       o.asked_at, o.last_at, o.digest,
       (select max(before.id) from ${schema}.outbox_refusal before where before.digest = o.digest),
       o.state = 'quarantined', o.destination, o.tenant, o.producer, o.effect_id, o.effect_key, o.effect_type,
       coalesce(o.last_code, 'destination-refused'), v.error_group, coalesce(o.last_error, ''), v.error_shape
  from unnest($2::text::bigint[], $3::text::text[], $4::text::text[]) as v (place, error_group, error_shape)
  join ${schema}.outbox o on o.position = v.place
 where o.destination = $1::text and o.state in ('quarantined', 'aside')
 order by o.position
on conflict (position) where status = 'open' do nothing`;

const rowColumns = `
       q.id::text as id, q.status, q.destination, q.tenant, q.producer, q.effect_id, q.effect_key, q.effect_type, q.code,
       q.error, q.error_group, q.attempts, q.payload_bytes, q.position::text as position, q.asked_at, q.refused_at,
       (extract(epoch from clock_timestamp() - q.refused_at) * 1000)::float8 as refused_ms, q.holds_key,
       q.again_of::text as again_of,
       d.id::text as decision_id, d.kind as decision_kind, d.decided_by, d.reason, q.decided_at`;

/**
 * The filter, from parameter 1 to 12. What is not given folds away when the statement is planned with its values; then
 * an open list goes by outbox_refusal_list or outbox_refusal_group, another one by the primary key.
 */
const refusedFits = `
       ($1::text is null or q.destination = $1::text)
   and ($2::text is null or q.code = $2::text)
   and ($3::text is null or q.error_group = $3::text)
   and ($4::text is null or q.tenant = $4::text)
   and ($5::text is null or q.producer = $5::text)
   and ($6::text is null or q.effect_id = $6::text)
   and ($7::text is null or q.effect_type = $7::text)
   and ($8::text is null or q.effect_key = $8::text)
   and ($9::text is null or q.refused_at >= $9::text::timestamptz)
   and ($10::text is null or q.refused_at < $10::text::timestamptz)
   and ($11::text is null or strpos(lower(q.error), lower($11::text)) > 0)
   and ($12::text is null or q.status = $12::text)`;

/** Newest first; pages by id, so new entries shift nothing. */
const listRefusedSql = (schema: string): string => `
select ${rowColumns}
  from ${schema}.outbox_refusal q
  left join ${schema}.outbox_decision d on d.id = q.decision_id
 where ${refusedFits}
   and ($13::text is null or q.id < $13::text::bigint)
 order by q.id desc
 limit $14::int`;

/** By outbox_refusal_digest. */
const refusalsOfSql = (schema: string): string => `
select ${rowColumns}, replace(q.digest::text, '-', '') as digest
  from ${schema}.outbox_refusal q
  left join ${schema}.outbox_decision d on d.id = q.decision_id
 where q.digest = any ($1::text::uuid[])
 order by q.id`;

/**
 * By primary keys. The body is the entry's own where it has one; else what lies in outbox, as long as nothing else was
 * decided on it since.
 */
const showRefusedSql = (schema: string): string => `
select ${rowColumns}, replace(q.digest::text, '-', '') as digest, o.effect_time,
       coalesce(q.headers, o.headers) as headers,
       encode(case when q.headers is null then o.payload else q.payload end, 'hex') as payload_hex,
       case when q.headers is null then o.payload_key_id else q.payload_key_id end as payload_key_id,
       q.repaired_headers, encode(q.repaired_payload, 'hex') as repaired_payload_hex, q.repaired_key_id
  from ${schema}.outbox_refusal q
  left join ${schema}.outbox_decision d on d.id = q.decision_id
  left join ${schema}.outbox o on o.position = q.position
        and not exists (select from ${schema}.outbox_refusal r
                         where r.digest = q.digest and r.id > q.id and r.status = 'repaired')
 where q.id = $1::text::bigint`;

/** One scan of what fits: groups are told apart by what was computed at insert, no error is read or compared. */
const groupRefusedSql = (schema: string): string => `
select g.*, s.error_shape as error,
       (extract(epoch from clock_timestamp() - g.first_refused_at) * 1000)::float8 as oldest_ms
  from (select q.destination, q.code, q.error_group, count(*)::int as entries, min(q.refused_at) as first_refused_at,
               max(q.refused_at) as last_refused_at, min(q.id)::text as sample
          from ${schema}.outbox_refusal q
         where ${refusedFits}
         group by q.destination, q.code, q.error_group
         order by count(*) desc, max(q.refused_at) desc
         limit $13::int) g
  join ${schema}.outbox_refusal s on s.id = g.sample::bigint
 order by g.entries desc, g.last_refused_at desc`;

/** As the list, without its rows. */
const countRefusedSql = (schema: string): string => `
select count(*)::int as entries from ${schema}.outbox_refusal q where ${refusedFits}`;

/** By primary key. */
const whyNotRefusedSql = (schema: string): string => `
select q.status, d.decided_by, q.decided_at
  from ${schema}.outbox_refusal q
  left join ${schema}.outbox_decision d on d.id = q.decision_id
 where q.id = $1::text::bigint`;

/**
 * The lanes of entries, always in the same order: whoever changes the state of a lane's effects holds its row, and
 * relays that settle or take wait, or pass by, until this transaction ends.
 */
const lockEffectLanesSql = (schema: string): string => `
select from ${schema}.outbox_lane l
 where (l.destination, l.lane) in (
         select o.destination, o.lane
           from ${schema}.outbox_refusal q
           join ${schema}.outbox o on o.position = q.position
          where q.id = any ($1::text::bigint[]))
 order by l.destination, l.lane
   for no key update`;

/** Behind the lanes' lock, so that it sees what was decided before. By primary key. */
const lockRefusalsSql = (schema: string): string => `
select q.id::text as id
  from ${schema}.outbox_refusal q
 where q.id = any ($1::text::bigint[]) and q.status = 'open'
 order by q.id
   for update`;

/**
 * Gives locked effects back to be sent, at their old places: later ones of their keys wait behind them, whether these
 * waited for the decision or had gone on. "scheduled" and not "ready", because what waits behind one is freed when a
 * scheduled one goes. By primary keys.
 */
const retryEffectsSql = (schema: string): string => `
with given as (
  update ${schema}.outbox o
     set state = 'scheduled', due_at = clock_timestamp(), counted = 0
    from ${schema}.outbox_refusal q
   where q.id = any ($1::text::bigint[]) and q.status = 'open' and o.position = q.position
     and o.state in ('quarantined', 'aside')
  returning q.id
)
update ${schema}.outbox_refusal q
   set status = 'retried', decision_id = $2::text::bigint, decided_at = clock_timestamp()
  from given
 where q.id = given.id
returning q.id::text as id`;

/** Takes locked effects out of the outbox; their bodies go to the entries, and the end of each is an attempt's row. */
const discardEffectsSql = (schema: string): string => `
with gone as (
  delete from ${schema}.outbox o
   using ${schema}.outbox_refusal q
   where q.id = any ($1::text::bigint[]) and q.status = 'open' and o.position = q.position
     and o.state in ('quarantined', 'aside')
  returning q.id, o.*
), told as (
  insert into ${schema}.outbox_attempt
    (digest, position, destination, tenant, producer, effect_id, attempt, outcome, code, error)
  select g.digest, g.position, g.destination, g.tenant, g.producer, g.effect_id, g.attempts, 'discarded', g.last_code,
         $3::text
    from gone g
)
update ${schema}.outbox_refusal q
   set status = 'discarded', decision_id = $2::text::bigint, decided_at = clock_timestamp(), headers = g.headers,
       payload = g.payload, payload_key_id = g.payload_key_id
  from gone g
 where q.id = g.id
returning q.id::text as id`;

/** Frees what waits behind effects that were discarded, a key at a time. */
const advanceKeysSql = (schema: string): string => `
select ${schema}.outbox_advance(k.destination, k.effect_key)
  from (select distinct q.destination, q.effect_key
          from ${schema}.outbox_refusal q
         where q.id = any ($1::text::bigint[]) and q.effect_key is not null
         order by 1, 2) k`;

/** As a retry, with another body; the one before goes to the entry, and the new one beside it. */
const repairEffectSql = (schema: string): string => `
with before as (
  select o.position, o.headers, o.payload, o.payload_key_id
    from ${schema}.outbox_refusal q
    join ${schema}.outbox o on o.position = q.position
   where q.id = $1::text::bigint and q.status = 'open' and o.state in ('quarantined', 'aside')
), given as (
  update ${schema}.outbox o
     set state = 'scheduled', due_at = clock_timestamp(), counted = 0, headers = $3::text, payload = $4::bytea,
         payload_key_id = $5::text
    from before
   where o.position = before.position
  returning o.position
)
update ${schema}.outbox_refusal q
   set status = 'repaired', decision_id = $2::text::bigint, decided_at = clock_timestamp(), headers = before.headers,
       payload = before.payload, payload_key_id = before.payload_key_id, repaired_headers = $3::text,
       repaired_payload = $4::bytea, repaired_key_id = $5::text
  from before, given
 where q.id = $1::text::bigint and given.position = before.position
returning q.id::text as id`;
