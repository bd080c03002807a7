const rowColumns = `
       q.id::text as id, q.status, q.consumer, q.tenant, q.producer, q.message_id, q.message_key, q.message_type, q.code,
       q.error, q.error_group, q.attempts, q.deliveries, q.payload_bytes, q.first_failed_at, q.last_failed_at,
       q.handler_version, q.again_of::text as again_of,
       d.id::text as decision_id, d.kind as decision_kind, d.decided_by, d.reason, q.decided_at`;

/**
 * The filter, from parameter 1 to 12. What is not given folds away when the statement is planned with its values; then
 * an open list goes by quarantine_open_list or quarantine_group, another one by quarantine_consumer or the primary key.
 */
export const quarantineFits = `
       ($1::text is null or q.consumer = $1::text)
   and ($2::text is null or q.code = $2::text)
   and ($3::text is null or q.error_group = $3::text)
   and ($4::text is null or q.tenant = $4::text)
   and ($5::text is null or q.producer = $5::text)
   and ($6::text is null or q.message_id = $6::text)
   and ($7::text is null or q.message_type = $7::text)
   and ($8::text is null or q.message_key = $8::text)
   and ($9::text is null or q.last_failed_at >= $9::text::timestamptz)
   and ($10::text is null or q.last_failed_at < $10::text::timestamptz)
   and ($11::text is null or strpos(lower(q.error), lower($11::text)) > 0)
   and ($12::text is null or q.status = $12::text)`;

/**
 * Newest or oldest first; pages by id, so new entries shift nothing. `q.id` is the number; a bare `id` in `order by`
 * would be the text that is selected.
 */
const listQuarantineSql = (schema: string, first: "newest" | "oldest"): string => `
select ${rowColumns}
  from ${schema}.quarantine q
  left join ${schema}.decision d on d.id = q.decision_id
 where ${quarantineFits}
   and ($13::text is null or q.id ${first === "newest" ? "<" : ">"} $13::text::bigint)
 order by q.id ${first === "newest" ? "desc" : "asc"}
 limit $14::int`;

/** One or many, by primary key. */
const showQuarantineSql = (schema: string): string => `
select ${rowColumns}, replace(q.digest::text, '-', '') as digest, q.raw_identity, q.message_time, q.headers,
       encode(q.payload, 'hex') as payload_hex, q.payload_key_id, encode(q.fingerprint, 'hex') as fingerprint,
       q.fingerprint_mode, r.entry_id is not null as repaired, replace(r.digest::text, '-', '') as repair_digest,
       r.tenant as repair_tenant, r.producer as repair_producer, r.message_id as repair_message_id,
       encode(r.payload, 'hex') as repair_payload_hex, r.payload_key_id as repair_key_id,
       encode(r.fingerprint, 'hex') as repair_fingerprint
  from ${schema}.quarantine q
  left join ${schema}.decision d on d.id = q.decision_id
  left join ${schema}.repair r on r.entry_id = q.id
 where q.id = any ($1::text::bigint[])
 order by q.id`;

/** By primary key, without the bodies. */
const entryMarksSql = (schema: string): string => `
select q.id::text as id, q.consumer, replace(q.digest::text, '-', '') as digest,
       encode(q.fingerprint, 'hex') as fingerprint, q.first_failed_at
  from ${schema}.quarantine q
 where q.id = any ($1::text::bigint[])`;

/** By quarantine_digest and repair_digest: an entry without identity that was repaired belongs to the one it was given. */
const quarantineHistorySql = (schema: string): string => `
select ${rowColumns}
  from ${schema}.quarantine q
  left join ${schema}.decision d on d.id = q.decision_id
 where q.id in (select o.id from ${schema}.quarantine o where o.digest = $1::text::uuid
                union select r.entry_id from ${schema}.repair r where r.digest = $1::text::uuid)
 order by q.id`;

/**
 * One scan of what fits: groups are told apart by what was computed at insert, no error is read or compared.
 */
const groupQuarantineSql = (schema: string): string => `
select g.*, s.error_shape as error
  from (select q.consumer, q.code, q.error_group, count(*)::int as entries, min(q.first_failed_at) as first_failed_at,
               max(q.last_failed_at) as last_failed_at, min(q.id)::text as sample
          from ${schema}.quarantine q
         where ${quarantineFits}
         group by q.consumer, q.code, q.error_group
         order by count(*) desc, max(q.last_failed_at) desc
         limit $13::int) g
  join ${schema}.quarantine s on s.id = g.sample::bigint
 order by g.entries desc, g.last_failed_at desc`;

/** As the list, without its rows. */
const countQuarantineSql = (schema: string): string => `
select count(*)::int as entries from ${schema}.quarantine q where ${quarantineFits}`;

/** The statements that read quarantine. */
export const quarantineReadSql = (schema: string) => ({
  listQuarantine: listQuarantineSql(schema, "newest"),
  listQuarantineOldest: listQuarantineSql(schema, "oldest"),
  showQuarantine: showQuarantineSql(schema),
  entryMarks: entryMarksSql(schema),
  quarantineHistory: quarantineHistorySql(schema),
  groupQuarantine: groupQuarantineSql(schema),
  countQuarantine: countQuarantineSql(schema),
});
