import { quotedIn } from "../migrations/0009-claim-functions.ts";

const columns = `consumer, producer, window_ms, nullif(forgotten_to, '-infinity') as forgotten_to, nullif(horizon, '-infinity') as horizon`;

/** One row a consumer and its own producers; the row of all consumers is no window. */
const listRetentionSql = (schema: string): string => `
select ${columns} from ${schema}.retention
 where consumer <> '' and ($1::text is null or consumer = $1::text)
 order by consumer, producer`;

/** Locked until the transaction ends: one change at a time, and none beside a batch that forgets. */
const lockRetentionSql = (schema: string): string => `
select from ${schema}.retention_guard for update`;

/** By primary key. A new row of a producer takes over what is forgotten of its consumer. */
const setWindowSql = (schema: string): string => `
insert into ${schema}.retention as r (consumer, producer, window_ms, forgotten_to, horizon)
select $1::text, $2::text, $3::text::bigint, coalesce(c.forgotten_to, '-infinity'), coalesce(c.horizon, '-infinity')
  from (select 1) as one
  left join ${schema}.retention c on c.consumer = $1::text and c.producer = ''
on conflict (consumer, producer) do update set window_ms = excluded.window_ms, changed_at = clock_timestamp()
returning ${columns}`;

/** By primary key. Whole milliseconds, as the times of messages are. */
const advanceHorizonSql = (schema: string): string => `
update ${schema}.retention r
   set forgotten_to = greatest(r.forgotten_to, c.cut),
       horizon = greatest(r.horizon, c.cut + $3::text::bigint * interval '1 millisecond'),
       changed_at = clock_timestamp()
  from (select date_trunc('milliseconds',
                          least(clock_timestamp() - o.window_ms * interval '1 millisecond', $4::text::timestamptz)) as cut
          from ${schema}.retention o
         where o.consumer = $1::text and o.producer = $2::text) c
 where r.consumer = $1::text and r.producer = $2::text and r.window_ms is not null and c.cut > r.forgotten_to`;

const findRetentionSql = (schema: string): string => `
select ${columns} from ${schema}.retention where consumer = $1::text and producer = $2::text`;

/**
 * Another mark with each change, no earlier than any horizon, and above what a rotation that was rolled back has left in
 * the sequence. A handful of rows.
 */
const raiseMarkSql = (schema: string): string => `
update ${schema}.retention_guard
   set mark = greatest(mark + 1, pg_sequence_last_value(${quotedIn(schema, "horizon_mark")}) + 1,
                       (select ceil(extract(epoch from max(r.horizon)) * 1000)::bigint
                                    from ${schema}.retention r where r.horizon > '-infinity'))`;

const rotateSql = (schema: string): string => `
select ${schema}.rotate($1::text::bigint, $2::text::bigint, coalesce($3::text::timestamptz, 'infinity')) as rotation`;

const noteReachSql = (schema: string): string => `
select ${schema}.note_reach() as noted`;

const generationsSql = (schema: string): string => `
select case when s.is_called then s.last_value::float8 end as open, g.closed_at
  from ${schema}.generation s, ${schema}.retention_guard g`;

const publishHorizonSql = (schema: string): string => `
select ${schema}.publish_horizon()`;

/** The statements of windows and horizons. */
export const retentionSql = (schema: string) => ({
  listRetention: listRetentionSql(schema),
  lockRetention: lockRetentionSql(schema),
  setWindow: setWindowSql(schema),
  advanceHorizon: advanceHorizonSql(schema),
  findRetention: findRetentionSql(schema),
  raiseMark: raiseMarkSql(schema),
  rotate: rotateSql(schema),
  noteReach: noteReachSql(schema),
  generations: generationsSql(schema),
  publishHorizon: publishHorizonSql(schema),
});
