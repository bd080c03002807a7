/**
 * What the ledger holds of messages under two names: $1 digests for the replay, $2 digests for the original, $3 a moment.
 * By primary key, and by `repair_digest`: what a repair gave back is what was applied.
 */
const standingSql = (schema: string): string => `
select t.handler_version as version, t.processed_at is not null as applied,
       encode(t.fingerprint, 'hex') as fingerprint, t.fingerprint_mode as mode,
       encode(rt.fingerprint, 'hex') as repaired, rt.fingerprint_mode as repaired_mode,
       o.handler_version as of_version, o.processed_at is not null as of_applied,
       o.processed_at < $3::text::timestamptz as of_before,
       encode(coalesce(ro.fingerprint, o.fingerprint), 'hex') as of_fingerprint,
       coalesce(ro.fingerprint_mode, o.fingerprint_mode) as of_mode
  from unnest($1::text::uuid[], $2::text::uuid[]) with ordinality as c (target, original, n)
  left join ${schema}.ledger t on t.digest = c.target
  left join ${schema}.ledger o on o.digest = c.original
  left join lateral (select r.fingerprint, r.fingerprint_mode from ${schema}.repair r
                      where r.digest = c.target order by r.entry_id desc limit 1) rt on true
  left join lateral (select r.fingerprint, r.fingerprint_mode from ${schema}.repair r
                      where r.digest = c.original order by r.entry_id desc limit 1) ro on true
 order by c.n`;

/** By a scan of the ledger, whose only index is that of the digests. */
const appliedSql = (schema: string): string => `
select handler_version as version, count(*)::int8::text as messages
  from ${schema}.ledger
 where consumer = $1::text and processed_at < $2::text::timestamptz
 group by handler_version
 order by handler_version`;

/**
 * Whether a replay may take messages under this name: one did before, or nobody has. One statement, so that what a replay
 * which has just begun applies is never seen without its row.
 */
const mayTakeSql = (schema: string): string => `
select exists (select from ${schema}.replay where consumer = $1::text and policy = $2::text) as known,
       exists (select from ${schema}.ledger where consumer = $1::text) as used`;

/** By `replay_consumer`: the last run of the same from the same, if it did not come to its end. */
const startSql = (schema: string): string => `
with last as (
  select id, ended from ${schema}.replay
   where consumer = $2::text and source = $4::text
   order by id desc limit 1
)
insert into ${schema}.replay (policy, consumer, of_consumer, source, effects, handler_version, rate, resumes, decided_by, reason)
values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::int,
        (select last.id from last where last.ended is distinct from 'done'), $8::text, $9::text)
returning id::text as id, resumes::text as resumes`;

/** By primary key. */
const noteSql = (schema: string): string => `
update ${schema}.replay
   set seen_at = clock_timestamp(), counts = $2::text::jsonb, ended = $3::text, error = $4::text,
       ended_at = case when $3::text is not null then clock_timestamp() end
 where id = $1::text::bigint and ended is null`;

const listSql = (schema: string): string => `
select id::text as id, policy, consumer, of_consumer, source, effects, handler_version, rate, resumes::text as resumes,
       decided_by, reason, started_at, seen_at, ended_at, ended, error, counts::text as counts
  from ${schema}.replay
 where $1::text is null or consumer = $1::text
 order by id desc limit $2::int`;

/** The digest of `identityDigest`, for an identity of the table m. */
const digestUnder = (consumer: string): string => `
substr(encode(sha256(convert_to(
  octet_length(${consumer}) || ':' || ${consumer} || octet_length(m.tenant) || ':' || m.tenant
    || octet_length(m.producer) || ':' || m.producer || octet_length(m.message_id) || ':' || m.message_id, 'utf8')), 'hex'), 1, 32)::uuid`;

/**
 * How a successor stands against a consumer, as of one snapshot: a scan of the ledger, with a look by primary key for
 * each message that the consumer has applied.
 */
const caughtUpSql = (schema: string): string => `
select count(*)::text as applied,
       count(*) filter (where s.digest is null)::text as missing,
       count(*) filter (where s.digest is not null and s.processed_at is null)::text as stored,
       (select count(*)::text from ${schema}.pending where consumer = $1::text) as pending,
       (select count(*)::int from ${schema}.worker
         where consumer = $1::text and closed_at is null and lease_until > clock_timestamp()) as workers
  from ${schema}.ledger m
  left join ${schema}.ledger s on s.digest = ${digestUnder("$2::text")}
 where m.consumer = $1::text and m.processed_at is not null`;

const retireSql = (schema: string): string => `
insert into ${schema}.retired_consumer (consumer, successor, decided_by, reason, applied, missing)
values ($1::text, $2::text, $3::text, $4::text, $5::text::bigint, $6::text::bigint)
on conflict (consumer) do nothing`;

const retiredSql = (schema: string): string => `
select consumer, successor, retired_at, decided_by, reason, applied::text as applied, missing::text as missing
  from ${schema}.retired_consumer
 where $1::text is null or consumer = $1::text
 order by retired_at`;

/** The statements of replays. */
export const replaySql = (schema: string) => ({
  now: "select clock_timestamp() as now",
  standing: standingSql(schema),
  applied: appliedSql(schema),
  mayTake: mayTakeSql(schema),
  start: startSql(schema),
  note: noteSql(schema),
  list: listSql(schema),
  caughtUp: caughtUpSql(schema),
  retire: retireSql(schema),
  retired: retiredSql(schema),
});
