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

/**
 * By primary keys, in the order given. The rows are this transaction's until it ends: it alone moves the cursor, and a new
 * owner waits for it. Parked keys are asked for in the same statement, as the claim does.
 */
export const followLogsSql = (schema: string): string => `
select o.log, o.epoch::text as epoch, o.applied::text as applied,
       exists (select from ${schema}.parked_key where consumer = $1::text) as parked
  from unnest($2::text::text[], $3::text::bigint[]) as given (log, epoch)
  join ${schema}.log_owner o on o.consumer = $1::text and o.log = given.log and o.epoch = given.epoch
  join ${schema}.log_taker t on t.consumer = $1::text and t.log = given.log and t.epoch = given.epoch
 where o.incarnation is not null and o.ends_at is null
   for no key update of o`;

/** By primary key, under the lock of `followLogs`. A row that is not as it was locked fails the division, and the transaction. */
export const moveLogsSql = (schema: string): string => `
with moved as (
  update ${schema}.log_owner o
     set applied = given.applied
    from unnest($2::text::text[], $3::text::bigint[], $4::text::bigint[]) as given (log, epoch, applied)
   where o.consumer = $1::text and o.log = given.log and o.epoch = given.epoch
     and (o.applied is null or o.applied < given.applied)
  returning 1
)
select 1 / (case when count(*) = cardinality($2::text::text[]) then 1 else 0 end) as moved from moved`;

/** By primary key. */
export const readCursorSql = (schema: string): string => `
select cluster, incarnation, applied::text as applied, ends_at::text as ends_at
  from ${schema}.log_owner
 where consumer = $1::text and log = $2::text`;

/** By primary key: the same, as the owner, and nobody else changes it until the transaction ends. */
export const lockCursorSql = (schema: string): string => `
${readCursorSql(schema)} and epoch = $3::text::bigint
   for no key update`;

/** By primary key, under the lock of `lockCursor`. */
export const writeCursorSql = (schema: string): string => `
update ${schema}.log_owner
   set cluster = $4::text, incarnation = $5::text, applied = $6::text::bigint, ends_at = $7::text::bigint
 where consumer = $1::text and log = $2::text and epoch = $3::text::bigint`;

/** By `message_pkey`: identities of records that are stored behind their key; one that is there stays as it is. */
export const reserveIdentitiesSql = (schema: string): string => `
insert into ${schema}.message
  (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
select c.digest, null, $1::text, c.tenant, c.producer, c.id, c.fingerprint, c.mode, $2::text
  from unnest($3::text::uuid[], $4::text::text[], $5::text::text[], $6::text::text[], $7::text::bytea[], $8::text::text[])
    as c (digest, tenant, producer, id, fingerprint, mode)
 order by c.digest
on conflict (digest) do nothing
returning digest::text as digest`;

/** By `log_owner_pkey`, its consumer; that has a row for each partition. What follows the colon is the producer and the part. */
export const recordLogSql = (schema: string): string => `
select log, applied::text as applied
  from ${schema}.log_owner
 where consumer = $1::text and incarnation = $2::text
   and substr(log, strpos(log, ':') + 1) = $4::text || '/' || $3::text`;

/** By a scan: the table has a row for each partition of each consumer. */
export const findRecordsSql = (schema: string): string => `
select consumer, regexp_replace(substr(log, strpos(log, ':') + 1), '/[0-9]+$', '') as producer
  from ${schema}.log_owner
 where incarnation = $1::text and right(log, length($2::text) + 1) = '/' || $2::text
   and ($3::text is null or consumer = $3::text)
   and ($4::text is null or substr(log, strpos(log, ':') + 1) = $4::text || '/' || $2::text)
 order by consumer, log
 limit 50`;
