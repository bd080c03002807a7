/** Functions of step 11 that hand effects out: as in step 5, with marks and bundles. */
export const outboxTakeFunctions = (schema: string): string => `
create or replace function ${schema}.outbox_advance(destination_name text, key_name text) returns void
language sql
volatile
as $function$
  with freed as (
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
    returning o.lane, o.position
  ), first as (
    select lane, min(position) as position from freed group by lane
  )
  -- They lie at old places.
  update ${schema}.outbox_lane l
     set ready_from = least(l.ready_from, f.position), next_ready = least(l.next_ready, f.position)
    from first f
   where l.destination = destination_name and l.lane = f.lane
     and (l.ready_from > f.position or l.next_ready > f.position)
$function$;

drop function ${schema}.outbox_lane_work(text, smallint, integer);
create function ${schema}.outbox_lane_look(
  destination_name text, lane_number smallint, most integer, from_place bigint, from_time timestamptz,
  out places bigint[], out first_ready bigint, out first_due timestamptz)
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $function$
declare
  blocked bigint[];
  seen record;
begin
  for round in 1..20 loop
    -- In one snapshot with the first bundle: an effect is seen only with every bundle that was committed before it was
    -- asked for, and one of its key may lie in it.
    with due as materialized (
      select o.position, o.due_at from ${schema}.outbox o
       where o.destination = destination_name and o.lane = lane_number and o.state = 'scheduled'
         and o.due_at >= from_time and o.due_at <= clock_timestamp()
       order by o.due_at limit most
    ), ready as materialized (
      select o.position from ${schema}.outbox o
       where o.destination = destination_name and o.lane = lane_number and o.state = 'ready' and o.position >= from_place
       order by o.position limit most
    ), chosen as (
      select c.position from (select due.position from due union all select ready.position from ready) c
       where c.position < coalesce((select b.position from ${schema}.outbox_bundle b where b.destination = destination_name
                                     order by b.position limit 1), 9223372036854775807)
       order by 1 limit most
    )
    select (select array_agg(c.position) from chosen c) as places, (select min(r.position) from ready r) as ready,
           (select min(d.due_at) from due d) as due
      into seen;
    places := seen.places;
    first_ready := least(first_ready, seen.ready);
    first_due := least(first_due, seen.due);
    if places is null then
      return;
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
      return;
    end if;
    update ${schema}.outbox set state = 'behind', due_at = null where position = any (blocked);
    places := array(select unnest(places) except select unnest(blocked));
    if cardinality(places) > 0 then
      return;
    end if;
  end loop;
end
$function$;
comment on function ${schema}.outbox_lane_look is
  'What may be sent now of a lane that the caller holds, from its marks on: null if nothing; empty if there is more to look through; and the first that is ready and due. Effects whose key waits are moved behind it, once.';

create or replace function ${schema}.outbox_take(
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
  free record;
  held record;
  work record;
  hand record;
  seen record;
  arrived bigint;
  looked timestamptz;
  whole boolean;
  handed integer;
  rows_left integer := most_rows;
  bytes_left bigint := most_bytes;
  lanes_taken integer := 0;
  unfinished boolean := false;
begin
  perform ${schema}.outbox_unpack(destination_name, most_rows);
  -- Read before any lane is looked at: what has a place up to here by then is either seen or not committed yet.
  select s.last_value into arrived from ${schema}.outbox_position s;
  for free in
    select l.lane, l.whole
      from (select w.*, w.whole_at < clock_timestamp() - interval '1 minute' as whole
              from ${schema}.outbox_lane w
             where w.destination = destination_name and (w.leased_until is null or w.leased_until < clock_timestamp())
             order by w.taken_at nulls first
            offset 0) l
     where l.whole
        or ${schema}.outbox_marks_move(l.next_at, l.next_xmax, l.taken_at)
        or exists (select from ${schema}.outbox o
                    where o.destination = destination_name and o.lane = l.lane and o.state = 'ready'
                      and o.position >= l.ready_from)
        or exists (select from ${schema}.outbox o
                    where o.destination = destination_name and o.lane = l.lane and o.state = 'scheduled'
                      and o.due_at >= l.due_from and o.due_at <= clock_timestamp())
  loop
    exit when lanes_taken >= most_lanes or rows_left < 1;
    whole := coalesce(free.whole, false);
    select l.* into held
      from ${schema}.outbox_lane l
     where l.destination = destination_name and l.lane = free.lane
       and (l.leased_until is null or l.leased_until < clock_timestamp())
       for no key update skip locked;
    continue when not found;
    -- Whatever may lie before the next marks was still to be committed when they were noted: all of it is seen by now,
    -- or lies in a bundle.
    select coalesce(pg_snapshot_xmin(s.now) >= held.next_xmax, true) as settled,
           (select b.position from ${schema}.outbox_bundle b where b.destination = destination_name
             order by b.position limit 1) as bundle
      into seen
      from pg_current_snapshot() s (now);
    looked := clock_timestamp();
    work := ${schema}.outbox_lane_look(destination_name, free.lane, rows_left,
      case when whole then 0 else held.ready_from end, case when whole then '-infinity' else held.due_from end);
    if whole or held.whole_at is null then
      held.whole_at := looked;
    end if;
    if seen.settled then
      held.ready_from := greatest(held.ready_from, least(held.next_ready, seen.bundle));
      held.due_from := greatest(held.due_from, held.next_due);
      held.next_ready := coalesce(work.first_ready, arrived);
      held.next_due := coalesce(work.first_due, looked);
      held.next_at := looked;
      held.next_xmax := pg_snapshot_xmax(pg_current_snapshot());
    end if;
    held.ready_from := least(held.ready_from, work.first_ready);
    held.due_from := least(held.due_from, work.first_due);
    unfinished := unfinished or cardinality(work.places) = 0;
    -- As many as fit. The first one always does, or it would never be handed out.
    select array_agg(f.position order by f.position) as places, max(f.bytes) as bytes into hand
      from (select o.position, row_number() over (order by o.position) as n,
                   sum(octet_length(o.headers) + coalesce(octet_length(o.payload), 0)) over (order by o.position) as bytes
              from ${schema}.outbox o where o.position = any (work.places)) f
     where f.bytes <= bytes_left or (f.n = 1 and lanes_taken = 0);
    handed := 0;
    if hand.places is not null then
      lease := coalesce(lease, nextval('${schema}.outbox_lease'));
      return query
        select free.lane::smallint, lease::text, p.position::text, p.attempts, p.counted,
               coalesce(p.expires_at <= clock_timestamp(), false),
               (extract(epoch from clock_timestamp() - p.asked_at) * 1000)::bigint::text,
               p.digest::text, p.tenant, p.producer, p.effect_id, p.effect_key, p.effect_type, p.effect_time,
               p.headers, encode(p.payload, 'hex'), p.payload_key_id
          from ${schema}.outbox p
         where p.position = any (hand.places)
         order by p.position;
      get diagnostics handed = row_count;
    end if;
    -- A lane of which nothing is handed out is not taken: its lease would be nobody's.
    if handed > 0 then
      held.lease_token := lease;
      held.leased_until := clock_timestamp() + lease_ms * interval '1 millisecond';
      held.relay_id := relay;
      held.taken_at := clock_timestamp();
      rows_left := rows_left - handed;
      bytes_left := bytes_left - hand.bytes;
      lanes_taken := lanes_taken + 1;
    end if;
    update ${schema}.outbox_lane l
       set lease_token = held.lease_token, leased_until = held.leased_until, relay_id = held.relay_id,
           taken_at = held.taken_at, ready_from = held.ready_from, due_from = held.due_from,
           next_ready = held.next_ready, next_due = held.next_due, next_at = held.next_at, next_xmax = held.next_xmax,
           whole_at = held.whole_at
     where l.destination = destination_name and l.lane = free.lane;
    exit when hand.places is null and cardinality(work.places) > 0;
  end loop;
  if unfinished then
    return query select null::smallint, null::text, null::text, null::integer, null::integer, null::boolean, null::text,
      null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text,
      null::text;
  end if;
end
$function$;
comment on function ${schema}.outbox_take is
  'Unpacks bundles, takes free lanes of a destination that have work, and hands out what may be sent in them, in order within each lane. A row of nulls: there is more to look through.';

create function ${schema}.outbox_marks_move(next_at timestamptz, next_xmax xid8, taken_at timestamptz) returns boolean
language sql
volatile
as $function$
  select next_at < clock_timestamp() - interval '2 seconds' and next_at < taken_at + interval '4 seconds'
         and next_xmax <= pg_snapshot_xmin(pg_current_snapshot())
$function$;
comment on function ${schema}.outbox_marks_move is
  'Whether an idle lane is to be looked at so that its marks move: twice after it was taken last, to behind what was sent.';

create function ${schema}.outbox_with_work(destination_names text[], from_marks boolean) returns setof text
language sql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $function$
  select d.name
    from unnest(destination_names) as d (name)
   where exists (select from ${schema}.outbox_bundle b where b.destination = d.name)
      or (not from_marks
          and (exists (select from ${schema}.outbox o where o.destination = d.name and o.state = 'ready')
            or exists (select from ${schema}.outbox o
                        where o.destination = d.name and o.state = 'scheduled' and o.due_at <= clock_timestamp())))
      or (from_marks
          and exists (select from ${schema}.outbox_lane l
                       where l.destination = d.name
                         and (exists (select from ${schema}.outbox o
                                       where o.destination = d.name and o.lane = l.lane and o.state = 'ready'
                                         and o.position >= l.ready_from)
                           or exists (select from ${schema}.outbox o
                                       where o.destination = d.name and o.lane = l.lane and o.state = 'scheduled'
                                         and o.due_at >= l.due_from and o.due_at <= clock_timestamp())
                           or ${schema}.outbox_marks_move(l.next_at, l.next_xmax, l.taken_at)
                           or l.whole_at < clock_timestamp() - interval '1 minute')))
$function$;
comment on function ${schema}.outbox_with_work is 'Which destinations have something for a relay to look at now. from_marks: a probe of each lane, in place of one that reads again what was sent while an old snapshot is open.';
`;
