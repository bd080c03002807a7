import { stretchPages } from "../../cleanup.ts";
import { standing } from "./progress.ts";

/** One row. Whoever works on it is left alone, so that nobody waits for the one who forgets. */
const takeCleanupSql = (schema: string): string => `
update ${schema}.cleanup c
   set worker_id = $1::text::uuid, lease_token = c.lease_token + 1, last_error = null,
       leased_until = clock_timestamp() + $2::int * interval '1 millisecond'
  from (select only_row from ${schema}.cleanup where leased_until < clock_timestamp()
            and (finished_at is null or finished_at <= clock_timestamp() - $3::text::float8 * interval '1 millisecond')
            for update skip locked) free
 where c.only_row = free.only_row
returning c.lease_token::text as token`;

/** Fences: whoever lost the lease changes nothing. Held to the end of the transaction. */
const keepCleanupSql = (schema: string): string => `
update ${schema}.cleanup
   set leased_until = clock_timestamp() + $3::int * interval '1 millisecond'
 where worker_id = $1::text::uuid and lease_token = $2::text::bigint
returning true as mine`;

const giveCleanupSql = (schema: string): string => `
update ${schema}.cleanup
   set leased_until = '-infinity', worker_id = null, last_error = $3::text,
       finished_at = case when $3::text is null then clock_timestamp() else finished_at end
 where worker_id = $1::text::uuid and lease_token = $2::text::bigint`;

const cleanupStateSql = (schema: string): string => `
select case when leased_until >= clock_timestamp() then worker_id end as worker_id,
       case when leased_until >= clock_timestamp() then leased_until end as leased_until,
       started_at, finished_at, identities::text as identities, last_error
  from ${schema}.cleanup`;

/**
 * How far each window reaches back by the clock of each source: from what is settled so far, less the window, less what
 * the source stood still within it. The slowest source of a consumer decides. Seconds only: a day of a time zone is not
 * always 24 hours.
 */
const cutsSql = (schema: string): string => `
select r.consumer, r.producer, r.window_ms::float8 as window_ms, count(s.source)::int as sources,
       coalesce(json_agg(s.source order by s.source) filter (where s.advanced_at is null or ${standing}), '[]')::text as waits_for,
       case when bool_and(back.before >= s.since) then min(back.before) end as before
  from ${schema}.retention r
  left join ${schema}.source_clock s on s.consumer = r.consumer
  left join lateral (
    select s.caught_up_at - make_interval(secs => r.window_ms::float8 / 1000
             + coalesce(sum(stop.seconds) filter (where stop.counted * 1000 < r.window_ms), 0)::float8) as before
      from (select extract(epoch from t.to_at - t.from_at) as seconds,
                   extract(epoch from s.caught_up_at - t.to_at)
                     - coalesce(sum(extract(epoch from t.to_at - t.from_at))
                         over (order by t.to_at desc rows between unbounded preceding and 1 preceding), 0) as counted
              from ${schema}.source_stop t
             where t.consumer = s.consumer and t.source = s.source) stop
  ) back on true
 where r.window_ms is not null and r.consumer <> ''
 group by r.consumer, r.producer, r.window_ms
 order by r.consumer, r.producer`;

/** Stops that no window reaches back to any more. */
const forgetStopsSql = (schema: string): string => `
delete from ${schema}.source_stop t
 where t.to_at < (select min(r.forgotten_to) from ${schema}.retention r
                   where r.consumer = t.consumer and r.window_ms is not null)`;

/** The table was rewritten, so what is known of its pages is not true any more. */
const freshStretchesSql = (schema: string): string => `
with file as (
  update ${schema}.cleanup
     set started_at = clock_timestamp(), identities = 0,
         ledger_file = pg_relation_filenode('${schema.replaceAll("'", "''")}.message'::regclass)
   where worker_id = $1::text::uuid and lease_token = $2::text::bigint
  returning ledger_file
)
delete from ${schema}.ledger_stretch
 where exists (select from ${schema}.cleanup c, file where c.ledger_file is distinct from file.ledger_file)`;

/** A row for each stretch that nobody has looked at; what lies behind the end of a table that shrank goes. */
const newStretchesSql = (schema: string): string => `
with size as (
  select pg_relation_size('${schema.replaceAll("'", "''")}.message'::regclass) / current_setting('block_size')::int as pages
), behind as (
  delete from ${schema}.ledger_stretch where first_page >= (select pages from size)
)
insert into ${schema}.ledger_stretch (first_page, consumer, oldest)
select page, '', '-infinity' from size, generate_series(0, size.pages - 1, ${stretchPages}) as page
on conflict do nothing`;

/** A scan of some ten thousand rows for ten million identities, once a sweep. */
const dueStretchesSql = (schema: string): string => `
with due as (
  select consumer, max(forgotten_to) as before from ${schema}.retention
   where consumer <> '' and forgotten_to > '-infinity' group by consumer
)
select l.first_page::float8 as page
  from ${schema}.ledger_stretch l
 where l.consumer = ''
   and exists (select from due
                 left join ${schema}.ledger_stretch s on s.first_page = l.first_page and s.consumer = due.consumer
                where coalesce(s.oldest, l.oldest) < due.before)
 order by l.first_page`;

/**
 * What the notes say of pages in which something may go, as `dueStretches` finds them; pages that nobody has looked at say
 * nothing. As many identities come in as lie there, in the time they lie there.
 */
const backlogSql = (schema: string): string => `
with due as (
  select d.consumer, max(d.before) as before
    from json_to_recordset($1::text::json) as d (consumer text, before timestamptz) group by d.consumer
), notes as (
  select s.consumer, s.oldest from ${schema}.ledger_stretch s where s.consumer <> '' and s.oldest > '-infinity'
), overdue as (
  select n.oldest, due.before from notes n join due using (consumer) where n.oldest < due.before
)
select coalesce(max(extract(epoch from o.before - o.oldest)) * 1000, 0)::float8 as behind_ms, min(o.oldest) as oldest,
       (select nullif(greatest(c.reltuples, 0), 0) / nullif(extract(epoch from clock_timestamp() - (select min(oldest) from notes)), 0)
          from pg_class c where c.oid = '${schema.replaceAll("'", "''")}.message'::regclass)::float8 as needed_per_second,
       (select c.identities / nullif(extract(epoch from case when c.finished_at > c.started_at then c.finished_at
                                                             else clock_timestamp() end - c.started_at), 0)
          from ${schema}.cleanup c)::float8 as done_per_second
  from overdue o`;

/**
 * Identities that are applied and forgotten by what their horizon says, of some pages, by a scan of these; with their
 * answers (answer_pkey) and failed attempts (attempt_digest). No index on the time, which every claim would write. What is
 * stored and not applied stays, and so does the identity of an open entry (quarantine_digest): a conflict's.
 */
const forgetPagesSql = (schema: string): string => `
with gone as (
  delete from ${schema}.message m
   where m.ctid >= $1::text::tid and m.ctid < $2::text::tid
     and m.processed_at < (select max(r.forgotten_to) from ${schema}.retention r where r.consumer <> '')
     and m.processed_at < coalesce(
           (select r.forgotten_to from ${schema}.retention r where r.consumer = m.consumer and r.producer = m.producer),
           (select r.forgotten_to from ${schema}.retention r where r.consumer = m.consumer and r.producer = ''))
     and not exists (select from ${schema}.quarantine q where q.digest = m.digest and q.status = 'open')
  returning m.digest
), answers as (
  delete from ${schema}.answer a using gone where a.digest = gone.digest
), attempts as (
  delete from ${schema}.attempt t using gone where t.digest = gone.digest
), counted as (
  update ${schema}.cleanup set identities = identities + (select count(*) from gone)
)
select count(*)::int as identities from gone`;

/**
 * Behind it, in the same transaction: what is oldest in these pages now. What is due and stays (an open entry, another
 * producer's longer window) is looked at again a window later, not in each sweep.
 */
const noteStretchesSql = (schema: string): string => `
with due as (
  select consumer, max(forgotten_to) as before from ${schema}.retention where consumer <> '' group by consumer
), oldest as (
  select m.consumer, min(case when m.processed_at < due.before then clock_timestamp() else m.processed_at end) as oldest
    from ${schema}.message m
    left join due on due.consumer = m.consumer
   where m.ctid >= $1::text::tid and m.ctid < $2::text::tid and m.processed_at is not null
   group by m.consumer
  union all
  select '', clock_timestamp()
)
insert into ${schema}.ledger_stretch as s (first_page, consumer, oldest)
select page, oldest.consumer, oldest.oldest
  from oldest, generate_series($3::text::bigint, $4::text::bigint - 1, ${stretchPages}) as page
on conflict (first_page, consumer) do update set oldest = excluded.oldest`;

/** Consumers that have nothing there any more. */
const dropStretchesSql = (schema: string): string => `
delete from ${schema}.ledger_stretch
 where first_page >= $1::text::bigint and first_page < $2::text::bigint and consumer <> ''`;

/** By primary key. Only ever longer; one that was taken away stays so. */
const declareWindowSql = (schema: string): string => `
insert into ${schema}.retention as r (consumer, producer, window_ms) values ($1::text, '', $2::text::bigint)
on conflict (consumer, producer) do update set window_ms = excluded.window_ms, changed_at = clock_timestamp()
 where r.window_ms < excluded.window_ms`;

const windowOfSql = (schema: string): string => `
select window_ms::float8 as window_ms from ${schema}.retention where consumer = $1::text and producer = ''`;

const shortestWindowSql = (schema: string): string => `
select min(window_ms)::float8 as window_ms from ${schema}.retention where consumer = $1::text`;

/** One scan of both generations, before any lock is taken. */
const withoutWindowSql = (schema: string): string => `
select distinct m.consumer from ${schema}.ledger m
 where not exists (select from ${schema}.retention r where r.consumer = m.consumer and r.producer = '')
 order by m.consumer`;

export const cleanupSql = (schema: string) => ({
  take: takeCleanupSql(schema),
  keep: keepCleanupSql(schema),
  give: giveCleanupSql(schema),
  state: cleanupStateSql(schema),
  declareWindow: declareWindowSql(schema),
  windowOf: windowOfSql(schema),
  shortestWindow: shortestWindowSql(schema),
  withoutWindow: withoutWindowSql(schema),
  cuts: cutsSql(schema),
  forgetStops: forgetStopsSql(schema),
  freshStretches: freshStretchesSql(schema),
  newStretches: newStretchesSql(schema),
  dueStretches: dueStretchesSql(schema),
  backlog: backlogSql(schema),
  forgetPages: forgetPagesSql(schema),
  dropStretches: dropStretchesSql(schema),
  noteStretches: noteStretchesSql(schema),
  publishHorizon: `select ${schema}.publish_horizon()`,
});
