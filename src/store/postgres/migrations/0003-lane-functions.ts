/** Functions of step 3 that move parked keys on and find what may be handled in a lane. */
export const laneFunctions = (schema: string): string => `
create function ${schema}.advance_key(consumer_name text, key_name text) returns bigint
language plpgsql
as $function$
declare
  first record;
  freed bigint;
begin
  select state, due_at, position into first
    from ${schema}.pending
   where consumer = consumer_name and message_key = key_name and state <> 'ready'
   order by position limit 1;
  if not found then
    if exists (select from ${schema}.pending where consumer = consumer_name and message_key = key_name) then
      return null;
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
    with turned as (
      update ${schema}.pending p
         set state = 'ready'
        from (select digest, bool_and(state = 'behind') over (order by position) as free
                from (select digest, state, position from ${schema}.pending
                       where consumer = consumer_name and message_key = key_name and state <> 'ready'
                       order by position limit 500) chunk) next
       where next.free and p.digest = next.digest
      returning p.position
    )
    select min(turned.position) into freed from turned;
  elsif first.due_at > clock_timestamp() then
    update ${schema}.parked_key set due_at = first.due_at
     where consumer = consumer_name and message_key = key_name and due_at < 'infinity';
  end if;
  return freed;
end
$function$;
comment on function ${schema}.advance_key is
  'Moves a parked key on: its next 500 messages become ready, or it waits for its first one, or it is parked no more. Returns the first place of what became ready. Called by the worker that holds its lane.';

create function ${schema}.lane_work(
  consumer_name text, lane_number smallint, most integer, ready_from bigint, due_from timestamptz,
  out rows uuid[], out first_ready bigint, out first_due timestamptz)
language plpgsql
as $function$
declare
  parked record;
  keys integer := 0;
  from_here bigint := ready_from;
  blocked uuid[];
begin
  for parked in
    select k.message_key, k.due_at from ${schema}.parked_key k
     where k.consumer = consumer_name and k.lane = lane_number and k.due_at between due_from and clock_timestamp()
     order by k.due_at limit 500
  loop
    keys := keys + 1;
    first_due := coalesce(first_due, parked.due_at);
    from_here := least(from_here, ${schema}.advance_key(consumer_name, parked.message_key));
  end loop;
  if keys = 500 then
    -- Those that could not be moved on make room for others.
    update ${schema}.parked_key k set due_at = clock_timestamp()
     where k.consumer = consumer_name and k.lane = lane_number and k.due_at between due_from and parked.due_at;
  end if;
  for round in 1..4 loop
    -- Where the first ones lie is asked before the cut: what does not fit into this hand must not be passed by the marks.
    with due as materialized (
      select p.digest, p.position, p.due_at from ${schema}.pending p
       where p.consumer = consumer_name and p.lane = lane_number and p.state = 'scheduled'
         and p.due_at between due_from and clock_timestamp()
       order by p.due_at limit most
    ), ready as materialized (
      select p.digest, p.position from ${schema}.pending p
       where p.consumer = consumer_name and p.lane = lane_number and p.state = 'ready' and p.position >= from_here
       order by p.position limit most
    )
    select (select array_agg(r.digest)
              from (select due.digest, due.position from due union all select ready.digest, ready.position from ready
                     order by position limit most) r),
           (select min(ready.position) from ready), least(first_due, (select min(due.due_at) from due))
      into rows, first_ready, first_due;
    first_ready := least(first_ready, case when from_here < ready_from then from_here end);
    if rows is null or not exists (
      select from ${schema}.parked_key k where k.consumer = consumer_name and k.lane = lane_number
    ) then
      return;
    end if;
    -- What lies before a message of its key that waits for a decision is not kept waiting by it.
    select array_agg(p.digest) into blocked
      from ${schema}.pending p
      join ${schema}.parked_key k on k.consumer = p.consumer and k.message_key = p.message_key
      left join lateral (
        select w.position from ${schema}.pending w
         where w.consumer = p.consumer and w.message_key = p.message_key and w.state <> 'ready'
         order by w.position limit 1) first on true
      left join lateral (
        select q.position from ${schema}.quarantine q
         where k.due_at = 'infinity'
           and q.consumer = p.consumer and q.message_key = p.message_key and q.status = 'open' and q.blocking
         order by q.position limit 1) open on true
     where p.digest = any (rows) and (first.position < p.position or open.position < p.position);
    if blocked is null then
      return;
    end if;
    -- A row that a worker of an earlier lease still has in its transaction is left out and not waited for.
    update ${schema}.pending p
       set state = 'behind', due_at = null
      from (select b.digest from ${schema}.pending b where b.digest = any (blocked) for update skip locked) free
     where p.digest = free.digest;
    rows := array(select unnest(rows) except select unnest(blocked));
    if cardinality(rows) > 0 then
      return;
    end if;
  end loop;
end
$function$;
comment on function ${schema}.lane_work is
  'What may be handled now in a lane that the caller holds, looked for from a place and a time on, and where the first of it lies. Null if there is nothing; empty if there is more to look through.';
`;
