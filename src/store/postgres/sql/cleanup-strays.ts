/** What a scope has forgotten: the producer's own window before its consumer's, and at least what a rotation forgot of all. */
const forgottenTo = (schema: string, consumer: string, producer: string): string => `
greatest(coalesce((select r.forgotten_to from ${schema}.retention r where r.consumer = ${consumer} and r.producer = ${producer}),
                  (select r.forgotten_to from ${schema}.retention r where r.consumer = ${consumer} and r.producer = '')),
         (select r.forgotten_to from ${schema}.retention r where r.consumer = '' and r.producer = ''))`;

const pagesOf = (schema: string, table: string): string =>
  `pg_relation_size('${schema.replaceAll("'", "''")}.${table}'::regclass) / current_setting('block_size')::int`;

/** Sizes of files, and the last entry by quarantine_pkey. */
const rangesSql = (schema: string): string => `
select (${pagesOf(schema, "answer")})::float8 as answer, (${pagesOf(schema, "attempt")})::float8 as attempt,
       coalesce((select max(id) + 1 from ${schema}.quarantine), 0)::float8 as discarded,
       coalesce((select finished_at < date_trunc('day', clock_timestamp()) from ${schema}.cleanup), true) as due`;

/**
 * Rows without an identity, by a scan of some pages, and the primary keys of both generations for what is old. A message that
 * fails and is delivered again has attempts and no identity, but younger ones.
 */
const withoutIdentitySql = (schema: string, table: string, time: string, producer: string): string => `
with gone as (
  delete from ${schema}.${table} a
   where a.ctid >= $1::text::tid and a.ctid < $2::text::tid
     and a.${time} < ${forgottenTo(schema, "a.consumer", producer)}
     and not exists (select from ${schema}.ledger m where m.digest = a.digest)
  returning 1
)
select count(*)::int as gone from gone`;

/**
 * Identities of discarded entries, by quarantine_pkey and the primary keys of both generations. Not while their message waits
 * in pending, or an entry of it waits or was decided within the window.
 */
const discardedSql = (schema: string): string => `
with over as materialized (
  select distinct q.digest
    from ${schema}.quarantine q
   where q.id >= $1::text::bigint and q.id < $2::text::bigint and q.status = 'discarded' and q.digest is not null
     and q.decided_at < ${forgottenTo(schema, "q.consumer", "q.producer")}
     and not exists (select from ${schema}.quarantine o
                      where o.digest = q.digest
                        and (o.status = 'open' or o.decided_at >= ${forgottenTo(schema, "q.consumer", "q.producer")}))
     and not exists (select from ${schema}.pending p where p.digest = q.digest)
), gone as (
  delete from ${schema}.message m using over where m.digest = over.digest and m.processed_at is null returning m.digest
), attempts as (
  delete from ${schema}.attempt a using gone where a.digest = gone.digest
)
select count(*)::int as gone from gone`;

export const cleanupStraysSql = (schema: string) => ({
  ranges: rangesSql(schema),
  answer: withoutIdentitySql(schema, "answer", "answered_at", "''"),
  attempt: withoutIdentitySql(schema, "attempt", "failed_at", "a.producer"),
  discarded: discardedSql(schema),
});
