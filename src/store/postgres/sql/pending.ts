/** One transaction of nothing else. */
export const hintSql = "select pg_notify($1::text, '')";

/** By primary key, 64 rows once a consumer. */
export const openLanesSql = (schema: string): string => `
insert into ${schema}.pending_lane (consumer, lane)
select $1::text, lane from generate_series(0, 63) as lane
on conflict (consumer, lane) do nothing`;

/**
 * Identity and body of a whole batch in one call, by `message_pkey`. Messages come to pending in the order they are
 * given. A function for the reasons of the claim.
 */
export const acceptSql = (schema: string): string => `
select ${schema}.accept($1::text, $2::text, $3::int, $4::text::uuid[], $5::text::text[], $6::text::text[],
                        $7::text::text[], $8::text::bytea[], $9::text::text[], $10::text::text[], $11::text::text[],
                        $12::text::text[], $13::text::text[], $14::text::bytea[], $15::text::text[],
                        $16::text::bigint[]) as not_new`;

/**
 * Lanes by their primary key, what is in them by `pending_ready`, `pending_scheduled` and `parked_key_due`: three probes
 * a lane where there is nothing to do. Each begins at the lane's mark, not at the index's first entry. With a
 * snapshot open that keeps what was handled in the indexes, takes for 20,000 messages cost 0.6, 1.1 and 1.8 s of the
 * server's time for the first, second and third 20,000 without the marks, and 0.4 to 0.5 s with them.
 */
export const takeSql = (schema: string): string => `
select * from ${schema}.take($1::text, $2::text::uuid, $3::int, $4::int, $5::int, $6::text::bigint,
                             $7::text::smallint[], $8::text::bigint[])`;

/**
 * By primary key, locked in one order. The exact taking, not only the lane: another owner's lease stays as it is, and so
 * does a lane that was given back while this was on its way.
 */
export const renewLeasesSql = (schema: string): string => `
with own as materialized (
  select l.consumer, l.lane
    from ${schema}.pending_lane l
    join unnest($2::text::smallint[], $3::text::bigint[]) as d (lane, token) on d.lane = l.lane and d.token = l.lease_token
   where l.consumer = $1::text and l.leased_until is not null
   order by l.lane
     for no key update of l
)
update ${schema}.pending_lane l
   set leased_until = clock_timestamp() + $4::int * interval '1 millisecond'
  from own
 where l.consumer = own.consumer and l.lane = own.lane
returning l.lane, l.lease_token::text as token`;

/** The rows by primary key, the lanes by theirs. First statement of its transaction, as the claim is. */
export const holdSql = (schema: string): string => `
select ${schema}.hold($1::text, $2::int, $3::text::uuid[], $4::text::smallint[], $5::text::bigint[]) as gone`;

/** Both tables by primary key. */
export const finishSql = (schema: string): string => `
select ${schema}.finish($1::text, $2::text::uuid[])`;

/** By primary key; held until the transaction ends, so that nobody takes the key for free meanwhile. */
export const parkedKeysSql = (schema: string): string => `
select message_key from ${schema}.parked_key
 where consumer = $1::text and message_key = any ($2::text::text[])
   for key share`;

/** Turns claims of this very transaction into stored messages, by primary key. */
export const unprocessSql = (schema: string): string => `
update ${schema}.message set processed_at = null where digest = any ($1::text::uuid[])`;

/** One message or many, all in one state, in the order they are given. */
export const insertPendingSql = (schema: string): string => `
insert into ${schema}.pending
  (consumer, state, due_at, attempts, deferrals, last_code, last_error, digest, lane, tenant, producer, message_id,
   fingerprint, fingerprint_mode, message_key, message_type, message_time, headers, payload, payload_key_id)
select $1::text, $2::text, clock_timestamp() + $3::int * interval '1 millisecond', $4::int, $5::int, $6::text, $7::text,
       c.digest, ${schema}.lane_of(c.message_key, c.digest), c.tenant, c.producer, c.id, c.fingerprint, c.mode,
       c.message_key, c.type, c.time, c.headers, c.payload, c.key_id
  from unnest($8::text::uuid[], $9::text::text[], $10::text::text[], $11::text::text[], $12::text::bytea[],
              $13::text::text[], $14::text::text[], $15::text::text[], $16::text::text[], $17::text::text[],
              $18::text::bytea[], $19::text::text[]) with ordinality
    as c (digest, tenant, producer, id, fingerprint, mode, message_key, type, time, headers, payload, key_id, n)
 order by c.n`;

/** By primary key, under the lock of `hold`. */
export const reschedulePendingSql = (schema: string): string => `
update ${schema}.pending
   set state = 'scheduled', due_at = clock_timestamp() + $2::int * interval '1 millisecond', attempts = $3::int,
       deferrals = $4::int, last_code = $5::text, last_error = $6::text
 where digest = $1::text::uuid`;

/** By primary key. What waits for a decision goes on waiting. */
export const parkKeySql = (schema: string): string => `
insert into ${schema}.parked_key (consumer, message_key, lane, digest, due_at)
values ($1::text, $2::text, ${schema}.lane_of($2::text, $3::text::uuid), $3::text::uuid,
        clock_timestamp() + $4::int * interval '1 millisecond')
on conflict (consumer, message_key) do update
   set due_at = case when parked_key.due_at = 'infinity' then parked_key.due_at
                     else least(parked_key.due_at, excluded.due_at) end`;

/** By primary key. The key waits for this entry's decision. */
export const parkForDecisionSql = (schema: string): string => `
insert into ${schema}.parked_key (consumer, message_key, lane, digest, due_at)
values ($1::text, $2::text, ${schema}.lane_of($2::text, $3::text::uuid), $3::text::uuid, 'infinity')
on conflict (consumer, message_key) do update set due_at = excluded.due_at, digest = excluded.digest`;

/** By primary key, under the lock of `hold`. */
export const removePendingSql = (schema: string): string => `
delete from ${schema}.pending where digest = $1::text::uuid`;

/** By the primary keys of both generations. */
export const findProcessedSql = (schema: string): string => `
select processed_at is not null as processed from ${schema}.ledger where digest = $1::text::uuid`;

/** The sequence's own row: what is stored from now on lies behind it. */
export const lastPositionSql = (schema: string): string => `
select last_value::text as position from ${schema}.arrival`;

/**
 * Up to a place, or anywhere. A probe of `pending_ready` in each lane, of `pending_scheduled`, and of `pending_waiting`
 * for each parked key that waits for no decision; the first one found ends it.
 */
export const pendingWaitsSql = (schema: string): string => `
select exists (select from generate_series(0, 63) as l (lane)
                where exists (select from ${schema}.pending
                               where consumer = $1::text and lane = l.lane and state = 'ready'
                                 and position <= coalesce($2::text::bigint, 9223372036854775807)))
    or exists (select from ${schema}.pending
                where consumer = $1::text and state = 'scheduled'
                  and position <= coalesce($2::text::bigint, 9223372036854775807))
    or exists (select from ${schema}.parked_key k
                where k.consumer = $1::text and k.due_at < 'infinity'
                  and exists (select from ${schema}.pending p
                               where p.consumer = k.consumer and p.message_key = k.message_key and p.state = 'behind'
                                 and p.position <= coalesce($2::text::bigint, 9223372036854775807))) as waits`;
