/** Functions of step 3 for decisions on quarantine entries, to be called in the transaction that writes the decision. */
export const requeueFunctions = (schema: string): string => `
create function ${schema}.release_keys(entry_ids bigint[]) returns void
language sql
as $function$
  update ${schema}.parked_key k
     set due_at = case when other.digest is null then clock_timestamp() else 'infinity' end,
         digest = coalesce(other.digest, k.digest)
    from ${schema}.quarantine q
    left join lateral (
      select o.digest from ${schema}.quarantine o
       where o.consumer = q.consumer and o.message_key = q.message_key and o.status = 'open' and o.blocking
         and o.id <> all (entry_ids)
       order by o.position limit 1) other on true
   where q.id = any (entry_ids) and q.blocking
     and k.consumer = q.consumer and k.message_key = q.message_key and k.digest = q.digest and k.due_at = 'infinity'
$function$;
comment on function ${schema}.release_keys is
  'Lets the messages go on that wait behind these quarantine entries, unless another open entry of the key blocks it too. For entries that have their decision.';

create function ${schema}.look_again(digests uuid[]) returns void
language plpgsql
as $function$
begin
  -- In one order, as everybody who locks several lanes.
  perform from ${schema}.pending_lane l
    where (l.consumer, l.lane) in (select p.consumer, p.lane from ${schema}.pending p where p.digest = any (digests))
    order by l.consumer, l.lane for no key update;
  update ${schema}.pending_lane l
     set ready_from = least(l.ready_from, put.first), next_ready = least(l.next_ready, put.first),
         due_from = least(l.due_from, put.due), next_due = least(l.next_due, put.due)
    from (select p.consumer, p.lane, min(p.position) as first, min(p.due_at) as due
            from ${schema}.pending p where p.digest = any (digests) group by p.consumer, p.lane) put
   where l.consumer = put.consumer and l.lane = put.lane;
end
$function$;
comment on function ${schema}.look_again is
  'Tells the lanes of pending messages that these lie further back than what was looked at last. For whoever puts a message at an old place, or makes one ready or due that was not.';

create function ${schema}.requeue(entry_ids bigint[]) returns setof bigint
language plpgsql
as $function$
declare
  put uuid[];
  moved bigint[];
begin
  with fit as (
    select distinct on (q.digest) q.*
      from ${schema}.quarantine q
     where q.id = any (entry_ids) and q.digest is not null
       and exists (select from ${schema}.message m where m.digest = q.digest and m.processed_at is null)
     order by q.digest, (q.code = 'payload-conflict'), q.id
  ), added as (
    insert into ${schema}.pending
      (digest, position, lane, consumer, tenant, producer, message_id, message_key, message_type, message_time, headers,
       payload, payload_key_id, fingerprint, fingerprint_mode, last_code, last_error)
    select q.digest, q.position, ${schema}.lane_of(q.message_key, q.digest), q.consumer, q.tenant, q.producer, q.message_id,
           q.message_key, q.message_type, q.message_time, q.headers, q.payload, q.payload_key_id, q.fingerprint,
           q.fingerprint_mode, q.code, q.error
      from fit q
    on conflict (digest) do nothing
    returning digest
  )
  select array_agg(q.id), array_agg(q.digest) into moved, put
    from fit q join added on added.digest = q.digest;
  if moved is null then
    return;
  end if;
  perform ${schema}.look_again(put);
  perform ${schema}.release_keys(moved);
  return query select unnest(moved);
end
$function$;
comment on function ${schema}.requeue is
  'Puts quarantine entries back into pending, ready, at their old places, and lets their keys go on. Of several entries of one identity one goes: none that is a conflict, if there is another. Returns those that went; not: entries without identity, already applied, or pending already.';
`;
