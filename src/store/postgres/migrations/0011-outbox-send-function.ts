/** As in step 5, with the transaction's number before its first place. */
export const outboxSendFunction = (schema: string): string => `
create or replace function ${schema}.outbox_send(
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
  -- Before the places: whoever waits for all transactions of a moment waits for all places given out by then.
  perform pg_current_xact_id();
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
`;
