/**
 * By primary key. The update waits for those who hold the row `for share`: the lane transactions of the owner before.
 */
export const takeLogSql = (schema: string): string => `
insert into ${schema}.log_owner as o (consumer, log, epoch) values ($1::text, $2::text, 1)
on conflict (consumer, log) do update set epoch = o.epoch + 1, taken_at = clock_timestamp()
returning epoch::text as epoch`;

/** By primary key. Whoever holds the row keeps its number from being raised until the transaction ends. */
export const ownedLogsSql = (schema: string): string => `
select o.log, o.epoch::text as epoch
  from ${schema}.log_owner o
  join unnest($2::text[], $3::bigint[]) as given (log, epoch) on o.log = given.log and o.epoch = given.epoch
 where o.consumer = $1::text
   for share of o`;
