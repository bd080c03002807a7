/** Functions of the step "outbox": sending, taking under a lease, settling, and moving waiting keys on. */
export const outboxFunctions = (schema: string): string => `
create function ${schema}.outbox_send(
  proof text, destinations text[], digests uuid[], lanes smallint[], tenants text[], producers text[], ids text[],
  keys text[], types text[], times text[], header_texts text[], payloads bytea[], key_ids text[], fingerprints bytea[],
  delays bigint[], lifetimes bigint[], strict boolean)
returns text
language plpgsql
volatile
as $function$
declare
  places bigint[];
  added uuid[];
  conflict uuid;
begin
  if proof <> transaction_timestamp()::text then
    raise exception 'Two statements ran in two transactions.' using errcode = '25P01';
  end if;
  places := array(select nextval('${schema}.outbox_position') from generate_subscripts(digests, 1));
  with new as (
    insert into ${schema}.outbox_id as f (digest, position, fingerprint)
    select e.digest, e.place, e.fingerprint
      from unnest(digests, places, fingerprints) as e (digest, place, fingerprint)
     order by e.digest
    on conflict (digest) do nothing
    returning f.digest
  )
  select array_agg(new.digest) into added from new;
  if added is not null then
    insert into ${schema}.outbox
      (position, destination, lane, state, due_at, expires_at, digest, tenant, producer, effect_id, effect_key,
       effect_type, effect_time, headers, payload, payload_key_id)
    select e.place, e.destination, e.lane, case when e.delay is null then 'ready' else 'scheduled' end,
           clock_timestamp() + e.delay * interval '1 millisecond',
           clock_timestamp() + e.lifetime * interval '1 millisecond',
           e.digest, e.tenant, e.producer, e.id, e.key, e.type, e.time, e.headers, e.payload, e.key_id
      from unnest(places, destinations, lanes, digests, tenants, producers, ids, keys, types, times, header_texts,
                  payloads, key_ids, delays, lifetimes)
        as e (place, destination, lane, digest, tenant, producer, id, key, type, time, headers, payload, key_id,
              delay, lifetime)
     where cardinality(added) = cardinality(digests) or e.digest = any (added)
     order by e.place;
    if cardinality(added) = cardinality(digests) then
      return null;
    end if;
  end if;
  if strict then
    select e.digest into conflict
      from unnest(digests, fingerprints) as e (digest, fingerprint)
      join ${schema}.outbox_id f on f.digest = e.digest
     where f.fingerprint <> e.fingerprint
     limit 1;
    if conflict is not null then
      raise exception 'An effect was asked for before with another payload.'
        using errcode = '23505', detail = 'outbox effect ' || conflict;
    end if;
  end if;
  return (
    select json_agg(json_build_array(e.digest, encode(f.fingerprint, 'hex')))
      from unnest(digests) as e (digest)
      left join ${schema}.outbox_id f on f.digest = e.digest
     where added is null or e.digest <> all (added));
end
$function$;
comment on function ${schema}.outbox_send is
  'Stores effects in the current transaction. Null if all were new; else a JSON array with digest and fingerprint of each that was not. proof: what transaction_timestamp() was in the caller''s transaction; another one is an error. strict: another payload under the same id is an error.';

create function ${schema}.outbox_advance(destination_name text, key_name text) returns void
language sql
volatile
as $function$
  update ${schema}.outbox o
     set state = case when w.n <= 100 then 'ready' else 'scheduled' end,
         due_at = case when w.n <= 100 then null else clock_timestamp() end
    from (select position, row_number() over (order by position) as n,
                 bool_and(state = 'behind') over (order by position) as free
            from (select position, state from ${schema}.outbox
                   where destination = destination_name and effect_key = key_name
                     and state in ('scheduled', 'behind', 'quarantined')
                   order by position limit 101) waiting) w
   where w.free and o.position = w.position
$function$;
comment on function ${schema}.outbox_advance is
  'Frees the next 100 effects behind one that has gone. The one after them becomes due, so that the first waiting effect of a key is never "behind". Called under the lock of the lane.';

create function ${schema}.outbox_lane_work(destination_name text, lane_number smallint, most integer) returns bigint[]
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $function$
declare
  places bigint[];
  blocked bigint[];
begin
  for round in 1..20 loop
    select array_agg(c.position) into places
      from (select due.position
              from (select position from ${schema}.outbox
                     where destination = destination_name and lane = lane_number and state = 'scheduled'
                       and due_at <= clock_timestamp()
                     order by due_at limit most) due
            union all
            select ready.position
              from (select position from ${schema}.outbox
                     where destination = destination_name and lane = lane_number and state = 'ready'
                     order by position limit most) ready
             order by 1 limit most) c;
    if places is null then
      return null;
    end if;
    -- Chosen are the first ones of the lane, so what is chosen before another of its key goes before it.
    select array_agg(o.position) into blocked
      from ${schema}.outbox o
     where o.position = any (places) and o.effect_key is not null
       and exists (select from ${schema}.outbox w
                    where w.destination = destination_name and w.effect_key = o.effect_key
                      and w.state in ('scheduled', 'behind', 'quarantined')
                      and w.position < o.position and w.position <> all (places));
    if blocked is null then
      return places;
    end if;
    update ${schema}.outbox set state = 'behind', due_at = null where position = any (blocked);
    places := array(select unnest(places) except select unnest(blocked));
    if cardinality(places) > 0 then
      return places;
    end if;
  end loop;
  return places;
end
$function$;
comment on function ${schema}.outbox_lane_work is
  'What may be sent now of a lane that the caller holds: null if nothing; empty if there is more to look through. Effects whose key waits are moved behind it, once.';

create function ${schema}.outbox_take(
  destination_name text, relay uuid, lease_ms integer, most_lanes integer, most_rows integer, most_bytes bigint)
returns table (
  lease_lane smallint, token text, place text, attempts integer, counted integer, expired boolean, waited_ms text,
  digest text, tenant text, producer text, effect_id text, effect_key text, effect_type text, effect_time text,
  headers text, payload_hex text, payload_key_id text)
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $function$
#variable_conflict use_column
declare
  lease bigint;
  lane_number smallint;
  places bigint[];
  chosen bigint[] := '{}';
  lanes_taken smallint[] := '{}';
  unfinished boolean := false;
begin
  for lane_number in
    with recursive ready (lane) as (
      select (select o.lane from ${schema}.outbox o
               where o.destination = destination_name and o.state = 'ready'
               order by o.lane limit 1)
      union all
      select (select o.lane from ${schema}.outbox o
               where o.destination = destination_name and o.state = 'ready' and o.lane > r.lane
               order by o.lane limit 1)
        from ready r where r.lane is not null
    ), due (lane) as (
      select s.lane
        from (select o.lane from ${schema}.outbox o
               where o.destination = destination_name and o.state = 'scheduled' and o.due_at <= clock_timestamp()
               order by o.due_at limit 500) s
    )
    select l.lane
      from ${schema}.outbox_lane l
     where l.destination = destination_name
       and (l.leased_until is null or l.leased_until < clock_timestamp())
       and l.lane in (select lane from ready union select lane from due)
     order by l.taken_at nulls first
  loop
    exit when cardinality(lanes_taken) >= most_lanes or cardinality(chosen) >= most_rows;
    perform from ${schema}.outbox_lane l
     where l.destination = destination_name and l.lane = lane_number
       and (l.leased_until is null or l.leased_until < clock_timestamp())
       for no key update skip locked;
    continue when not found;
    places := ${schema}.outbox_lane_work(destination_name, lane_number, most_rows - cardinality(chosen));
    unfinished := unfinished or cardinality(places) = 0;
    continue when places is null or cardinality(places) = 0;
    lease := coalesce(lease, nextval('${schema}.outbox_lease'));
    update ${schema}.outbox_lane l
       set lease_token = lease, leased_until = clock_timestamp() + lease_ms * interval '1 millisecond',
           relay_id = relay, taken_at = clock_timestamp()
     where l.destination = destination_name and l.lane = lane_number;
    chosen := chosen || places;
    lanes_taken := lanes_taken || lane_number;
  end loop;
  if unfinished then
    return query select null::smallint, null::text, null::text, null::integer, null::integer, null::boolean, null::text,
      null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text,
      null::text;
  end if;
  return query
    select l.lane, l.lease_token::text, p.position::text, p.attempts, p.counted,
           coalesce(p.expires_at <= clock_timestamp(), false),
           (extract(epoch from clock_timestamp() - p.asked_at) * 1000)::bigint::text,
           p.digest::text, p.tenant, p.producer, p.effect_id, p.effect_key, p.effect_type, p.effect_time,
           p.headers, encode(p.payload, 'hex'), p.payload_key_id
      from (select w.*, sum(coalesce(octet_length(w.payload), 0)) over (order by w.position) as bytes,
                   row_number() over (order by w.position) as n
              from ${schema}.outbox w where w.position = any (chosen)) p
      join ${schema}.outbox_lane l on l.destination = destination_name and l.lane = p.lane
     where p.n = 1 or p.bytes <= most_bytes
     order by p.position;
end
$function$;
comment on function ${schema}.outbox_take is
  'Takes free lanes of a destination that have work, and hands out what may be sent in them, in order. A row of nulls: there is more to look through.';

create function ${schema}.outbox_settle(
  destination_name text, relay uuid, done_lanes smallint[], done_tokens bigint[],
  lanes smallint[], tokens bigint[], places bigint[], actions text[], outcomes text[], delays bigint[],
  counts boolean[], codes text[], errors text[], statuses integer[], results text[], took integer[])
returns text
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $function$
declare
  valid_lanes smallint[];
  valid_tokens bigint[];
  settled bigint[];
  moved text[];
  key_name text;
begin
  -- Whoever decides anything about a lane's effects holds its row; the token says whose the lane is.
  select array_agg(l.lane), array_agg(l.lease_token) into valid_lanes, valid_tokens
    from (select l.lane, l.lease_token
            from ${schema}.outbox_lane l
           where l.destination = destination_name
             and (l.lane, l.lease_token) in (select * from unnest(lanes || done_lanes, tokens || done_tokens))
           order by l.lane
             for no key update) l;
  if cardinality(places) > 0 then
    with verdict as materialized (
      -- By the token, too: one relay may bring verdicts of a lease that it lost and of the one it has now.
      select v.* from unnest(lanes, tokens, places, actions, outcomes, delays, counts, codes, errors, statuses, results, took)
        as v (lane, token, place, action, outcome, delay, counts, code, error, status, result, took_ms)
        join unnest(valid_lanes, valid_tokens) as held (lane, token) on held.lane = v.lane and held.token = v.token
    ), removed as (
      delete from ${schema}.outbox o using verdict v
       where v.action = 'remove' and o.position = v.place and o.destination = destination_name
      returning o.*
    ), kept as (
      update ${schema}.outbox o
         set state = v.action, attempts = o.attempts + 1, counted = o.counted + v.counts::int,
             due_at = case when v.action = 'scheduled' then clock_timestamp() + v.delay * interval '1 millisecond' end,
             last_code = v.code, last_error = v.error, last_at = clock_timestamp()
        from verdict v
       where v.action <> 'remove' and o.position = v.place and o.destination = destination_name
      returning o.*
    ), gone as (
      select r.*, r.attempts + 1 as number, r.state <> 'ready' as frees from removed r
      union all
      select k.*, k.attempts, k.state = 'aside' from kept k
    ), written as (
      insert into ${schema}.outbox_attempt
        (digest, position, destination, tenant, producer, effect_id, attempt, outcome, code, error, status, result,
         took_ms, relay_id)
      select g.digest, g.position, g.destination, g.tenant, g.producer, g.effect_id, g.number, v.outcome, v.code, v.error,
             v.status, v.result, v.took_ms, relay
        from gone g
        join verdict v on v.place = g.position
      returning position
    )
    select (select array_agg(w.position) from written w),
           array_agg(distinct g.effect_key) filter (where g.frees and g.effect_key is not null)
      into settled, moved
      from gone g;
    if moved is not null then
      foreach key_name in array moved loop
        perform ${schema}.outbox_advance(destination_name, key_name);
      end loop;
    end if;
  end if;
  if cardinality(done_lanes) > 0 then
    update ${schema}.outbox_lane l
       set leased_until = null, relay_id = null
      from unnest(done_lanes, done_tokens) as d (lane, token)
     where l.destination = destination_name and l.lane = d.lane and l.lease_token = d.token;
  end if;
  if coalesce(cardinality(settled), 0) = cardinality(places) then
    return null;
  end if;
  return (select json_agg(p.place::text) from unnest(places) as p (place)
           where settled is null or p.place <> all (settled));
end
$function$;
comment on function ${schema}.outbox_settle is
  'Writes what became of effects, under the leases of their lanes, and gives lanes back. Null if all; else a JSON array of those that are not this relay''s any more, of which nothing was written.';
`;
