/** How effects are forgotten, with the schema's name filled in once. */
export type OutboxForgetSql = ReturnType<typeof outboxForgetSql>;

export const outboxForgetSql = (schema: string) => ({
  takeForgetting: takeSql(schema),
  giveForgetting: giveSql(schema),
  holdForgetting: holdSql(schema),
  effectPages: pagesSql(schema),
  forgetEffects: forgetSql(schema),
  forgetBodies: forgetBodiesSql(schema),
});

/** One row. */
const takeSql = (schema: string): string => `
update ${schema}.outbox_cleanup
   set token = token + 1, worker_id = $1::text::uuid,
       leased_until = clock_timestamp() + $2::int * interval '1 millisecond'
 where leased_until is null or leased_until < clock_timestamp()
returning token::text as token`;

/** One row. */
const giveSql = (schema: string): string => `
update ${schema}.outbox_cleanup set leased_until = null, finished_at = clock_timestamp() where token = $1::text::bigint`;

/** Prolongs the lease, and holds its row until the batch is committed: nobody takes over in the middle of one. */
const holdSql = (schema: string): string => `
update ${schema}.outbox_cleanup
   set leased_until = clock_timestamp() + $2::int * interval '1 millisecond'
 where token = $1::text::bigint and leased_until is not null
returning token`;

const pagesSql = (schema: string): string => `
select (pg_relation_size('${schema.replaceAll("'", "''")}.outbox_id'::regclass) / current_setting('block_size')::int)::float8
         as pages`;

/**
 * By a scan of some pages of outbox_id, so that no index on the time is needed, which would cost every send. What has an
 * attempt or a decision within the window stays (outbox_attempt_digest), and so does what waits (outbox_pkey).
 */
const forgetSql = (schema: string): string => `
with gone as (
  delete from ${schema}.outbox_id f
   where f.ctid >= $1::text::tid and f.ctid < $2::text::tid
     and f.recorded_at < clock_timestamp() - $3::text::float8 * interval '1 millisecond'
     and not exists (select from ${schema}.outbox o where o.position = f.position)
     and not exists (select from ${schema}.outbox_attempt a
                      where a.digest = f.digest
                        and a.at >= clock_timestamp() - $3::text::float8 * interval '1 millisecond')
  returning f.digest
), attempts as (
  delete from ${schema}.outbox_attempt a using gone where a.digest = gone.digest
), refusals as (
  delete from ${schema}.outbox_refusal r using gone where r.digest = gone.digest
)
select count(*)::int as effects from gone`;

/** By outbox_refusal_bodies, which holds only what has a body to forget. */
const forgetBodiesSql = (schema: string): string => `
with old as (
  select r.id from ${schema}.outbox_refusal r
   where (r.headers is not null or r.repaired_headers is not null)
     and r.decided_at < clock_timestamp() - $1::text::float8 * interval '1 millisecond'
   order by r.decided_at
   limit 1000
), gone as (
  update ${schema}.outbox_refusal r
     set headers = null, payload = null, payload_key_id = null, repaired_headers = null, repaired_payload = null,
         repaired_key_id = null
    from old where r.id = old.id
  returning 1
)
select count(*)::int as effects from gone`;
