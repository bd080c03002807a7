/** By primary key, unless the consumer is retired: then it tells who took over. Old closed and long dead workers go with it, and old marks: both tables stay a handful of rows. */
export const openWorkerSql = (schema: string): string => `
with old as (
  delete from ${schema}.worker
   where consumer = $2::text
     and (closed_at < clock_timestamp() - interval '1 day' or lease_until < clock_timestamp() - interval '7 days')
), old_marks as (
  delete from ${schema}.started where started_at < clock_timestamp() - interval '7 days'
), retired as (
  select successor from ${schema}.retired_consumer where consumer = $2::text
), opened as (
  insert into ${schema}.worker (id, consumer, lease_until)
  select $1::text::uuid, $2::text, clock_timestamp() + $3::int * interval '1 millisecond'
   where not exists (select from retired)
)
select successor from retired`;

/** Renews by primary key, tells who took over if the consumer is retired, and counts the unclean deaths of the last hour by `worker_open`. */
export const heartbeatSql = (schema: string): string => `
with renewed as (
  update ${schema}.worker
     set lease_until = clock_timestamp() + $3::int * interval '1 millisecond'
   where id = $1::text::uuid
)
select count(*)::int as died,
       (select successor from ${schema}.retired_consumer where consumer = $2::text) as successor
  from ${schema}.worker
 where consumer = $2::text and closed_at is null and id <> $1::text::uuid
   and lease_until < clock_timestamp() and lease_until > clock_timestamp() - interval '1 hour'`;

/** By primary key. */
export const closeWorkerSql = (schema: string): string => `
update ${schema}.worker set closed_at = clock_timestamp() where id = $1::text::uuid`;

/**
 * The mark "about to run", with what others left for the same message: by `started_pkey`. A mark without a worker row
 * is as old as a worker that was forgotten, and counts as a crash.
 */
export const markStartedSql = (schema: string): string => `
with marked as (
  insert into ${schema}.started (digest, worker_id) values ($2::text::uuid, $1::text::uuid)
  on conflict (digest, worker_id) do update set started_at = clock_timestamp()
)
select count(*) filter (where w.id is null or (w.closed_at is null and w.lease_until < clock_timestamp()))::int as crashes,
       count(*) filter (where w.closed_at is null and w.lease_until >= clock_timestamp())::int as running
  from ${schema}.started s
  left join ${schema}.worker w on w.id = s.worker_id
 where s.digest = $2::text::uuid and s.worker_id <> $1::text::uuid`;

/** By primary key, or its first column. */
export const clearStartedSql = (schema: string): string => `
delete from ${schema}.started
 where digest = $2::text::uuid and ($3::boolean or worker_id = $1::text::uuid)`;
