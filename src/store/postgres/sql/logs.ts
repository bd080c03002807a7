/**
 * First, by primary key: nobody holds this row, so it is raised at once, and transactions of the owner before that begin
 * from now on are refused. Without it they could share the lock of `ownLogSql` in turns, and its update would wait for ever.
 */
export const raiseLogSql = (schema: string): string => `
insert into ${schema}.log_taker as t (consumer, log, epoch) values ($1::text, $2::text, 1)
on conflict (consumer, log) do update set epoch = t.epoch + 1, taken_at = clock_timestamp()
returning epoch::text as epoch`;

/** Then, by primary key: waits for transactions that hold the row `for share`, and are to end first. */
export const ownLogSql = (schema: string): string => `
insert into ${schema}.log_owner as o (consumer, log, epoch) values ($1::text, $2::text, $3::bigint)
on conflict (consumer, log) do update set epoch = excluded.epoch where o.epoch < excluded.epoch`;

/**
 * By primary keys. Whoever holds the owner's row keeps it from being given to another one until the transaction ends; if it
 * was given away while this waited, PostgreSQL reads the row again and it does not count.
 */
export const ownedLogsSql = (schema: string): string => `
select o.log, o.epoch::text as epoch
  from unnest($2::text[], $3::bigint[]) as given (log, epoch)
  join ${schema}.log_owner o on o.consumer = $1::text and o.log = given.log and o.epoch = given.epoch
  join ${schema}.log_taker t on t.consumer = $1::text and t.log = given.log and t.epoch = given.epoch
   for share of o`;
