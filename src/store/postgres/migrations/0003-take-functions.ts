/** Functions of step 3 that hand out pending messages, and move parked keys on. */
export const takeFunctions = (schema: string): string => `
create function ${schema}.advance_key(consumer_name text, key_name text) returns void
language plpgsql
as $function$
declare
  first record;
begin
  select state, due_at, position into first
    from ${schema}.pending
   where consumer = consumer_name and message_key = key_name and state <> 'ready'
   order by position limit 1;
  if not found then
    if exists (select from ${schema}.pending where consumer = consumer_name and message_key = key_name) then
      return;
    end if;
    -- Whoever stores a message behind the key holds the row "for key share" until its commit; the check after the lock
    -- has a snapshot of its own and sees it.
    perform from ${schema}.parked_key
     where consumer = consumer_name and message_key = key_name and due_at < 'infinity'
       for update skip locked;
    if found and not exists (select from ${schema}.pending where consumer = consumer_name and message_key = key_name) then
      delete from ${schema}.parked_key where consumer = consumer_name and message_key = key_name;
    end if;
  elsif first.state = 'behind' then
    update ${schema}.pending p
       set state = 'ready'
      from (select digest, bool_and(state = 'behind') over (order by position) as free
              from (select digest, state, position from ${schema}.pending
                     where consumer = consumer_name and message_key = key_name and state <> 'ready'
                     order by position limit 500) chunk) next
     where next.free and p.digest = next.digest;
  elsif first.due_at > clock_timestamp() then
    update ${schema}.parked_key set due_at = first.due_at
     where consumer = consumer_name and message_key = key_name and due_at < 'infinity';
  end if;
end
$function$;
comment on function ${schema}.advance_key is
  'Moves a parked key on: its next 500 messages become ready, or it waits for its first one, or it is parked no more. Called by the worker that holds its lane.';

create function ${schema}.lane_work(consumer_name text, lane_number smallint, most integer) returns uuid[]
language plpgsql
as $function$
declare
  key_name text;
  rows uuid[];
  blocked uuid[];
begin
  for key_name in
    select message_key from ${schema}.parked_key
     where consumer = consumer_name and lane = lane_number and due_at <= clock_timestamp()
     order by due_at limit 500
  loop
    perform ${schema}.advance_key(consumer_name, key_name);
  end loop;
  for round in 1..20 loop
    select array_agg(r.digest) into rows
      from (select due.digest, due.position
              from (select digest, position from ${schema}.pending
                     where consumer = consumer_name and lane = lane_number and state = 'scheduled'
                       and due_at <= clock_timestamp()
                     order by due_at limit most) due
            union all
            select ready.digest, ready.position
              from (select digest, position from ${schema}.pending
                     where consumer = consumer_name and lane = lane_number and state = 'ready'
                     order by position limit most) ready
             order by position limit most) r;
    if rows is null or not exists (
      select from ${schema}.parked_key where consumer = consumer_name and lane = lane_number
    ) then
      return rows;
    end if;
    select array_agg(p.digest) into blocked
      from ${schema}.pending p
      join ${schema}.parked_key k on k.consumer = p.consumer and k.message_key = p.message_key
      left join lateral (
        select w.position from ${schema}.pending w
         where w.consumer = p.consumer and w.message_key = p.message_key and w.state <> 'ready'
         order by w.position limit 1) first on true
     where p.digest = any (rows) and (k.due_at = 'infinity' or first.position < p.position);
    if blocked is null then
      return rows;
    end if;
    update ${schema}.pending set state = 'behind', due_at = null where digest = any (blocked);
    rows := array(select unnest(rows) except select unnest(blocked));
    if cardinality(rows) > 0 then
      return rows;
    end if;
  end loop;
  return rows;
end
$function$;
comment on function ${schema}.lane_work is
  'What may be handled now in a lane that the caller holds: null if nothing; empty if there is more to look through.';

create function ${schema}.take(
  consumer_name text, worker uuid, lease_ms integer, most_lanes integer, most_rows integer, most_bytes bigint,
  done_lanes smallint[], done_tokens bigint[])
returns table (
  lease_lane smallint, token bigint, suspect boolean, digest text, place text, attempts integer, deferrals integer,
  tenant text, producer text, message_id text, message_key text, message_type text, message_time text, headers text,
  payload_hex text, payload_key_id text, fingerprint text, fingerprint_mode text)
language plpgsql
set lock_timeout = 1000
as $function$
#variable_conflict use_column
declare
  lease bigint;
  lane_number smallint;
  held record;
  rows uuid[];
  chosen uuid[] := '{}';
  lanes_taken smallint[] := '{}';
  unfinished boolean := false;
begin
  if cardinality(done_lanes) > 0 then
    update ${schema}.pending_lane l
       set leased_until = null, worker_id = null, taken_to = null
      from unnest(done_lanes, done_tokens) as d (lane, token)
     where l.consumer = consumer_name and l.lane = d.lane and l.lease_token = d.token;
  end if;
  if most_rows < 1 then
    return;
  end if;
  for lane_number in
    select l.lane
      from ${schema}.pending_lane l
     where l.consumer = consumer_name
       and (l.leased_until is null or l.leased_until < clock_timestamp())
       and (exists (select from ${schema}.pending p
                     where p.consumer = consumer_name and p.lane = l.lane and p.state = 'ready')
         or exists (select from ${schema}.pending p
                     where p.consumer = consumer_name and p.lane = l.lane and p.state = 'scheduled'
                       and p.due_at <= clock_timestamp())
         or exists (select from ${schema}.parked_key k
                     where k.consumer = consumer_name and k.lane = l.lane and k.due_at <= clock_timestamp()))
     order by l.taken_at nulls first
  loop
    exit when cardinality(lanes_taken) >= most_lanes or cardinality(chosen) >= most_rows;
    select l.leased_until, l.taken_to, l.suspect_to into held
      from ${schema}.pending_lane l
     where l.consumer = consumer_name and l.lane = lane_number
       and (l.leased_until is null or l.leased_until < clock_timestamp())
       for no key update skip locked;
    continue when not found;
    rows := ${schema}.lane_work(consumer_name, lane_number, most_rows - cardinality(chosen));
    unfinished := unfinished or cardinality(rows) = 0;
    continue when rows is null or cardinality(rows) = 0;
    lease := coalesce(lease, nextval('${schema}.lease'));
    -- A lease that ran out was not given back: what its worker had in hand may be what ended it.
    if held.leased_until is not null then
      held.suspect_to := greatest(held.suspect_to, held.taken_to);
    end if;
    update ${schema}.pending_lane l
       set lease_token = lease, leased_until = clock_timestamp() + lease_ms * interval '1 millisecond',
           worker_id = worker, taken_at = clock_timestamp(),
           taken_to = span.last, suspect_to = case when span.first <= held.suspect_to then held.suspect_to end
      from (select min(p.position) as first, max(p.position) as last
              from ${schema}.pending p where p.digest = any (rows)) span
     where l.consumer = consumer_name and l.lane = lane_number;
    chosen := chosen || rows;
    lanes_taken := lanes_taken || lane_number;
  end loop;
  if unfinished then
    return query select null::smallint, null::bigint, null::boolean, null::text, null::text, null::integer, null::integer,
      null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text,
      null::text, null::text;
  end if;
  return query
    select l.lane, l.lease_token, coalesce(p.position <= l.suspect_to, false), p.digest::text, p.position::text,
           p.attempts, p.deferrals, p.tenant, p.producer, p.message_id, p.message_key, p.message_type, p.message_time,
           p.headers, encode(p.payload, 'hex'), p.payload_key_id, encode(p.fingerprint, 'hex'), p.fingerprint_mode
      from (select w.*, sum(coalesce(octet_length(w.payload), 0)) over (order by w.position) as bytes,
                   row_number() over (order by w.position) as n
              from ${schema}.pending w where w.digest = any (chosen)) p
      join ${schema}.pending_lane l on l.consumer = consumer_name and l.lane = p.lane
     where p.n = 1 or p.bytes <= most_bytes
     order by p.position;
end
$function$;
comment on function ${schema}.take is
  'Gives lanes back, takes free ones that have work, and hands out what may be handled in them, in order. A row of nulls: there is more to look through.';
`;
