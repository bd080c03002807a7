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
                        $12::text::text[], $13::text::text[], $14::text::bytea[], $15::text::text[]) as not_new`;

/**
 * Lanes by their primary key, what is in them by `pending_ready` and `pending_scheduled`: three probes a lane where there
 * is nothing to do.
 */
export const takeSql = (schema: string): string => `
select * from ${schema}.take($1::text, $2::text::uuid, $3::int, $4::int, $5::int, $6::text::bigint,
                             $7::text::smallint[], $8::text::bigint[])`;

/** By primary key. The exact taking, not only the lane: another owner's lease stays as it is. */
export const renewLeasesSql = (schema: string): string => `
update ${schema}.pending_lane l
   set leased_until = clock_timestamp() + $4::int * interval '1 millisecond'
  from unnest($2::text::smallint[], $3::text::bigint[]) as d (lane, token)
 where l.consumer = $1::text and l.lane = d.lane and l.lease_token = d.token
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

/** By `message_pkey`. */
export const findProcessedSql = (schema: string): string => `
select processed_at is not null as processed from ${schema}.message where digest = $1::text::uuid`;

/** One probe of `pending_ready`, `pending_scheduled` and `parked_key_due` each. */
export const pendingWaitsSql = (schema: string): string => `
select exists (select from ${schema}.pending where consumer = $1::text and state = 'ready')
    or exists (select from ${schema}.pending where consumer = $1::text and state = 'scheduled')
    or exists (select from ${schema}.parked_key where consumer = $1::text and due_at < 'infinity') as waits`;
