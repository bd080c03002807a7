/** A handful of rows by primary key. */
const reportProgressSql = (schema: string): string => `
select ${schema}.report_progress($1::text, $2::text, $3::text::uuid, $4::text::float8, $5::int)`;

/** By primary key. */
const leaveSourceSql = (schema: string): string => `
delete from ${schema}.source_worker where consumer = $1::text and source = $2::text and worker_id = $3::text::uuid`;

/** By primary keys. */
const retireSourceSql = (schema: string): string => `
with workers as (
  delete from ${schema}.source_worker where consumer = $1::text and source = $2::text
), stops as (
  delete from ${schema}.source_stop where consumer = $1::text and source = $2::text
), known as (
  delete from ${schema}.source_clock where consumer = $1::text and source = $2::text returning true
)
select exists (select from known) as known`;

/** Standing still: no advance for four reports. */
export const standing = "s.advanced_at < clock_timestamp() - make_interval(secs => s.every_ms::float8 / 250)";

const listProgressSql = (schema: string): string => `
select s.consumer, s.source, s.since, s.caught_up_at,
       case when s.advanced_at is null then 'never' when ${standing} then 'standing' else 'caught-up' end as state,
       (select count(*)::int from ${schema}.source_worker w
         where w.consumer = s.consumer and w.source = s.source and w.seen_until >= clock_timestamp()) as workers,
       (select coalesce(sum(extract(epoch from t.to_at - t.from_at)) * 1000, 0)::float8 from ${schema}.source_stop t
         where t.consumer = s.consumer and t.source = s.source) as stood_ms
  from ${schema}.source_clock s
 where $1::text is null or s.consumer = $1::text
 order by s.consumer, s.source`;

export const progressSql = (schema: string) => ({
  reportProgress: reportProgressSql(schema),
  leaveSource: leaveSourceSql(schema),
  listProgress: listProgressSql(schema),
  retireSource: retireSourceSql(schema),
});
