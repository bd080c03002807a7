/** How many entries one transaction decides on: few, because workers and relays wait for the lanes that it changes. */
const decisionBatchSize = 500;

const columns = `
       d.id::text as id, d.kind, d.decided_at, d.decided_by, d.reason, coalesce(d.filter, '{}') as filter, d.matched,
       d.decided, d.skipped, d.finished_at`;

export type DecisionSql = ReturnType<typeof decisionSql>;

/**
 * The statements on a table of decisions and on the batches that are left of them, `TABLE_batch`. Decided is on `entries`, of
 * which `fits` chooses by the parameters $1 to $12.
 */
export const decisionSql = (schema: string, table: string, entries: string, fits: string) => ({
  /** A decision on one entry, of which nothing is left to do. */
  insert: `
insert into ${schema}.${table} (kind, decided_by, reason, filter, matched, decided, finished_at)
values ($1::text, $2::text, $3::text, $4::text, 1, 1, clock_timestamp())
returning id::text as id`,

  /**
   * A decision on all entries that fit, with their numbers in batches, in order of arrival: exactly those that were
   * counted, whatever comes meanwhile. Nothing is written unless the count is as expected. One scan, and one row for
   * each batch; the entries themselves are reached later, batch by batch.
   */
  record: `
with matching as materialized (
  select q.id, (row_number() over (order by q.position) - 1) / ${decisionBatchSize} as batch
    from ${schema}.${entries} q
   where ${fits}
), counted as materialized (
  select count(*)::int as entries from matching
), made as (
  insert into ${schema}.${table} (kind, decided_by, reason, filter, matched, finished_at)
  select $13::text, $14::text, $15::text, $16::text, c.entries, case when c.entries = 0 then clock_timestamp() end
    from counted c
   where c.entries = $17::int
  returning id
), batches as (
  insert into ${schema}.${table}_batch (decision_id, batch, entry_ids)
  select made.id, m.batch, array_agg(m.id order by m.id) from matching m, made group by made.id, m.batch
)
select (select entries from counted) as matched, (select id::text from made) as id`,

  /** By primary key. */
  find: `
select ${columns} from ${schema}.${table} d where d.id = $1::text::bigint`,

  /** By the index of those that are not finished. A purge is carried on by another purge. */
  unfinished: `
select ${columns} from ${schema}.${table} d where d.finished_at is null and d.kind <> 'purge' order by d.id`,

  /** By primary key, backwards. */
  list: `
select ${columns} from ${schema}.${table} d order by d.id desc limit $1::int`,

  /** The next batch of a decision, by primary key; a second process waits for it and then takes the one after. */
  nextBatch: `
select b.batch, b.entry_ids::text as entry_ids
  from ${schema}.${table}_batch b
 where b.decision_id = $1::text::bigint
 order by b.batch
 limit 1
   for update`,

  /** By primary key. Behind the transaction that decided on them. */
  finishBatch: `
with gone as (
  delete from ${schema}.${table}_batch where decision_id = $1::text::bigint and batch = $2::int
)
update ${schema}.${table} d
   set decided = decided + $3::int, skipped = skipped + $4::int,
       finished_at = case when not exists (select from ${schema}.${table}_batch b
                                            where b.decision_id = d.id and b.batch <> $2::int)
                          then clock_timestamp() end
 where d.id = $1::text::bigint`,

  /** A decision of which no batch is left: the process that took the last one died before it could say so, or never was one. */
  finish: `
update ${schema}.${table} set finished_at = clock_timestamp()
 where id = $1::text::bigint and finished_at is null
   and not exists (select from ${schema}.${table}_batch b where b.decision_id = $1::text::bigint)`,
});
