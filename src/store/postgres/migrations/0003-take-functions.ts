/** The function of step 3 that hands out pending messages. */
export const takeFunctions = (schema: string): string => `
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
  free record;
  held record;
  work record;
  hand record;
  arrived bigint;
  whole boolean;
  settled boolean;
  handed integer;
  rows_left integer := most_rows;
  bytes_left bigint := most_bytes;
  lanes_taken integer := 0;
  unfinished boolean := false;
begin
  if cardinality(done_lanes) > 0 then
    -- In one order, as everybody who locks several lanes.
    perform from ${schema}.pending_lane l
      where l.consumer = consumer_name and l.lane = any (done_lanes)
      order by l.lane for no key update;
    update ${schema}.pending_lane l
       set leased_until = null, worker_id = null, taken_to = null
      from unnest(done_lanes, done_tokens) as d (lane, token)
     where l.consumer = consumer_name and l.lane = d.lane and l.lease_token = d.token;
  end if;
  if most_rows < 1 then
    return;
  end if;
  -- Read before any lane is looked at: what has a place up to here by then is either seen or not committed yet.
  select s.last_value into arrived from ${schema}.arrival s;
  -- The lanes in their order first, then their probes one after another: only as many as it takes to fill the hand.
  for free in
    select l.lane, l.whole
      from (select w.*, w.whole_at < clock_timestamp() - interval '1 minute' as whole
              from ${schema}.pending_lane w
             where w.consumer = consumer_name and (w.leased_until is null or w.leased_until < clock_timestamp())
             order by w.taken_at nulls first
            offset 0) l
     where l.whole
        -- In a lane that has become empty the marks are moved twice more, to behind what was handled last.
        or (l.next_at < clock_timestamp() - interval '2 seconds' and l.next_at < l.taken_at + interval '4 seconds')
        or exists (select from ${schema}.pending p
                    where p.consumer = consumer_name and p.lane = l.lane and p.state = 'ready' and p.position >= l.ready_from)
        or exists (select from ${schema}.pending p
                    where p.consumer = consumer_name and p.lane = l.lane and p.state = 'scheduled'
                      and p.due_at between l.due_from and clock_timestamp())
        or exists (select from ${schema}.parked_key k
                    where k.consumer = consumer_name and k.lane = l.lane and k.due_at between l.due_from and clock_timestamp())
  loop
    exit when lanes_taken >= most_lanes or rows_left < 1;
    whole := coalesce(free.whole, false);
    select l.* into held
      from ${schema}.pending_lane l
     where l.consumer = consumer_name and l.lane = free.lane
       and (l.leased_until is null or l.leased_until < clock_timestamp())
       for no key update skip locked;
    continue when not found;
    -- What may lie before the next marks was still to be committed when they were noted: it is by now, or has had its time.
    settled := coalesce(pg_snapshot_xmin(pg_current_snapshot()) >= held.next_xmax
                        or held.next_at < clock_timestamp() - interval '2 seconds', true);
    work := ${schema}.lane_work(consumer_name, free.lane, rows_left,
      case when whole then 0 else held.ready_from end, case when whole then '-infinity' else held.due_from end);
    if whole or held.whole_at is null then
      held.whole_at := clock_timestamp();
    end if;
    if settled then
      held.ready_from := greatest(held.ready_from, held.next_ready);
      held.due_from := greatest(held.due_from, held.next_due);
      held.next_ready := coalesce(work.first_ready, arrived);
      held.next_due := coalesce(work.first_due, clock_timestamp());
      held.next_at := clock_timestamp();
      held.next_xmax := pg_snapshot_xmax(pg_current_snapshot());
    end if;
    held.ready_from := least(held.ready_from, work.first_ready);
    held.due_from := least(held.due_from, work.first_due);
    unfinished := unfinished or cardinality(work.rows) = 0;
    -- As many as fit. The first one always does, or it would never be handed out.
    select array_agg(f.digest) as rows, min(f.position) as first, max(f.position) as last, max(f.bytes) as bytes into hand
      from (select p.digest, p.position, row_number() over (order by p.position) as n,
                   sum(octet_length(p.headers) + coalesce(octet_length(p.payload), 0)) over (order by p.position) as bytes
              from ${schema}.pending p where p.digest = any (work.rows)) f
     where f.bytes <= bytes_left or (f.n = 1 and lanes_taken = 0);
    handed := 0;
    if hand.rows is not null then
      lease := coalesce(lease, nextval('${schema}.lease'));
      -- A lease that ran out was not given back: what its worker had in hand may be what ended it.
      if held.leased_until is not null then
        held.suspect_to := greatest(held.suspect_to, held.taken_to);
      end if;
      return query
        select free.lane::smallint, lease, coalesce(p.position <= held.suspect_to, false), p.digest::text,
               p.position::text, p.attempts, p.deferrals, p.tenant, p.producer, p.message_id, p.message_key,
               p.message_type, p.message_time, p.headers, encode(p.payload, 'hex'), p.payload_key_id,
               encode(p.fingerprint, 'hex'), p.fingerprint_mode
          from ${schema}.pending p
         where p.digest = any (hand.rows)
         order by p.position;
      get diagnostics handed = row_count;
    end if;
    -- A lane of which nothing is handed out is not taken: its lease would be nobody's.
    if handed > 0 then
      held.lease_token := lease;
      held.leased_until := clock_timestamp() + lease_ms * interval '1 millisecond';
      held.worker_id := worker;
      held.taken_at := clock_timestamp();
      held.taken_to := hand.last;
      held.suspect_to := case when hand.first <= held.suspect_to then held.suspect_to end;
      rows_left := rows_left - handed;
      bytes_left := bytes_left - hand.bytes;
      lanes_taken := lanes_taken + 1;
    end if;
    update ${schema}.pending_lane l
       set lease_token = held.lease_token, leased_until = held.leased_until, worker_id = held.worker_id,
           taken_at = held.taken_at, taken_to = held.taken_to, suspect_to = held.suspect_to,
           ready_from = held.ready_from, due_from = held.due_from, next_ready = held.next_ready,
           next_due = held.next_due, next_at = held.next_at, next_xmax = held.next_xmax, whole_at = held.whole_at
     where l.consumer = consumer_name and l.lane = free.lane;
    exit when hand.rows is null and cardinality(work.rows) > 0;
  end loop;
  if unfinished then
    return query select null::smallint, null::bigint, null::boolean, null::text, null::text, null::integer, null::integer,
      null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text,
      null::text, null::text;
  end if;
end
$function$;
comment on function ${schema}.take is
  'Gives lanes back, takes free ones that have work, and hands out what may be handled in them, in order within each lane. A row of nulls: there is more to look through.';
`;
