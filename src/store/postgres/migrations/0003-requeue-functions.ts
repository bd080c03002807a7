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

create function ${schema}.requeue(entry_ids bigint[]) returns setof bigint
language plpgsql
as $function$
begin
  return query
    with put as (
      insert into ${schema}.pending
        (digest, position, lane, consumer, tenant, producer, message_id, message_key, message_type, message_time, headers,
         payload, payload_key_id, fingerprint, fingerprint_mode, last_code, last_error)
      select q.digest, q.position, ${schema}.lane_of(q.message_key, q.digest), q.consumer, q.tenant, q.producer, q.message_id,
             q.message_key, q.message_type, q.message_time, q.headers, q.payload, q.payload_key_id, q.fingerprint,
             q.fingerprint_mode, q.code, q.error
        from ${schema}.quarantine q
       where q.id = any (entry_ids) and q.digest is not null
         and exists (select from ${schema}.message m where m.digest = q.digest and m.processed_at is null)
       order by q.position
      on conflict (digest) do nothing
      returning digest
    )
    select q.id from ${schema}.quarantine q join put on put.digest = q.digest where q.id = any (entry_ids);
  perform ${schema}.release_keys(entry_ids);
end
$function$;
comment on function ${schema}.requeue is
  'Puts quarantine entries back into pending, ready, at their old places, and lets their keys go on. Returns the entries that went back; not: those without identity, already applied, or pending already.';
`;
