import { quotedIn } from "./0009-claim-functions.ts";

/**
 * Claims that look into the closed generation only for ids within its reach. The number of the generation is read before
 * the reach, which tells of one number, and the mark is compared behind the insert: so a reach never speaks for another
 * generation than the one that is closed at the insert. `docs/decisions/0016` has the proof.
 */
export const claimWithinReach = (schema: string): string => `
create function ${schema}.in_closed(
  consumer_name text, open_generation bigint, digests uuid[], producers text[], ids text[]) returns uuid[]
language plpgsql
volatile
as $function$
begin
  if cardinality(digests) = 1
     and exists (select from ${schema}.closed_reach r
                  where r.consumer = consumer_name and r.producer = producers[1] and r.generation = open_generation
                    and (octet_length(ids[1]), ids[1] collate "C") > (octet_length(r.last_id), r.last_id)) then
    return null;
  end if;
  -- Its snapshot may be older than a rotation: then this fails with 40001, and the next attempt has a new one.
  if pg_catalog.current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform from ${schema}.retention_guard for share;
  end if;
  -- Not "any (digests)": that is planned anew each time, 15 us of the server's time.
  if cardinality(digests) = 1 then
    return (select array_agg(m.digest) from ${schema}.message_closed m where m.digest = digests[1]);
  end if;
  return (
    select array_agg(m.digest) from ${schema}.message_closed m
     where m.digest = any (array(
       select c.digest
         from unnest(digests, producers, ids) as c (digest, producer, id)
         left join (select r.producer, r.last_id, octet_length(r.last_id) as bytes from ${schema}.closed_reach r
                     where r.consumer = consumer_name and r.generation = open_generation) r on r.producer = c.producer
        where ((octet_length(c.id), c.id collate "C") > (r.bytes, r.last_id)) is not true)));
end
$function$;
comment on function ${schema}.in_closed(text, bigint, uuid[], text[], text[]) is
  'Those that the closed generation holds. What lies beyond its reach is not looked for.';

create or replace function ${schema}.claim(
  consumer_name text, version text, lock_timeout_ms integer,
  digests uuid[], tenants text[], producers text[], ids text[], fingerprints bytea[], modes text[], sent bigint[])
returns text
language plpgsql
volatile
set lock_timeout = 0
as $function$
declare
  mark bigint := pg_catalog.pg_sequence_last_value(${quotedIn(schema, "horizon_mark")});
  generation bigint;
  suspect uuid[];
  aside uuid[];
  claimed uuid[];
  parked boolean;
begin
  -- Local to this function: the "set" clause above restores the caller's own lock_timeout when it returns.
  perform pg_catalog.set_config('lock_timeout', lock_timeout_ms::text, true);
  if mark is not null then
    generation := pg_catalog.pg_sequence_last_value(${quotedIn(schema, "generation")});
    -- First: a look waits for a rotation that has begun, and then the horizon is what that has made of it.
    if generation is not null then
      aside := ${schema}.in_closed(consumer_name, generation, digests, producers, ids);
    end if;
    if mark > any (sent) then
      suspect := ${schema}.suspects(consumer_name, digests, producers, sent);
      aside := aside || suspect;
    end if;
  end if;
  -- Whether keys are parked is asked in the same statement: 4 us of the server's time a call, by itself 6.
  if aside is null and cardinality(digests) = 1 then
    insert into ${schema}.message
      (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
    values (digests[1], pg_catalog.now(), consumer_name, tenants[1], producers[1], ids[1], fingerprints[1], modes[1], version)
    on conflict (digest) do nothing
    returning exists (select from ${schema}.parked_key where consumer = consumer_name) into parked;
    if found then
      if pg_catalog.pg_sequence_last_value(${quotedIn(schema, "horizon_mark")}) is distinct from mark then
        perform ${schema}.refuse_moved(consumer_name, digests, producers, sent, null, generation);
      end if;
      return case when parked then 'parked' end;
    end if;
  else
    with added as (
      insert into ${schema}.message as m
        (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
      select c.digest, pg_catalog.now(), consumer_name, c.tenant, c.producer, c.id, c.fingerprint, c.mode, version
        from unnest(digests, tenants, producers, ids, fingerprints, modes)
          as c (digest, tenant, producer, id, fingerprint, mode)
       where aside is null or c.digest <> all (aside)
       order by c.digest
      on conflict (digest) do nothing
      returning m.digest
    )
    select array_agg(added.digest), exists (select from ${schema}.parked_key where consumer = consumer_name)
      into claimed, parked
      from added;
    if claimed is not null
       and pg_catalog.pg_sequence_last_value(${quotedIn(schema, "horizon_mark")}) is distinct from mark then
      perform ${schema}.refuse_moved(consumer_name, digests, producers, sent, claimed, generation);
    end if;
    if cardinality(claimed) = cardinality(digests) then
      return case when parked then 'parked' end;
    end if;
  end if;
  return concat(case when parked then 'parked' end,
                ${schema}.not_new(digests, fingerprints, modes, claimed, suspect, generation is not null));
end
$function$;

create or replace function ${schema}.accept(
  consumer_name text, version text, lock_timeout_ms integer,
  digests uuid[], tenants text[], producers text[], ids text[], fingerprints bytea[], modes text[],
  message_keys text[], types text[], times text[], header_texts text[], payloads bytea[], key_ids text[], sent bigint[])
returns text
language plpgsql
volatile
set lock_timeout = 0
as $function$
declare
  mark bigint := pg_catalog.pg_sequence_last_value(${quotedIn(schema, "horizon_mark")});
  generation bigint;
  suspect uuid[];
  aside uuid[];
  added uuid[];
begin
  perform pg_catalog.set_config('lock_timeout', lock_timeout_ms::text, true);
  if mark is not null then
    generation := pg_catalog.pg_sequence_last_value(${quotedIn(schema, "generation")});
    -- First: a look waits for a rotation that has begun, and then the horizon is what that has made of it.
    if generation is not null then
      aside := ${schema}.in_closed(consumer_name, generation, digests, producers, ids);
    end if;
    if mark > any (sent) then
      suspect := ${schema}.suspects(consumer_name, digests, producers, sent);
      aside := aside || suspect;
    end if;
  end if;
  with new as (
    insert into ${schema}.message as m
      (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
    select c.digest, null, consumer_name, c.tenant, c.producer, c.id, c.fingerprint, c.mode, version
      from unnest(digests, tenants, producers, ids, fingerprints, modes)
        as c (digest, tenant, producer, id, fingerprint, mode)
     where aside is null or c.digest <> all (aside)
     order by c.digest
    on conflict (digest) do nothing
    returning m.digest
  )
  select array_agg(new.digest) into added from new;
  if added is not null then
    if pg_catalog.pg_sequence_last_value(${quotedIn(schema, "horizon_mark")}) is distinct from mark then
      perform ${schema}.refuse_moved(consumer_name, digests, producers, sent, added, generation);
    end if;
    insert into ${schema}.pending
      (digest, lane, consumer, tenant, producer, message_id, message_key, message_type, message_time, headers,
       payload, payload_key_id, fingerprint, fingerprint_mode)
    select c.digest, ${schema}.lane_of(c.message_key, c.digest), consumer_name, c.tenant, c.producer, c.id,
           c.message_key, c.type, c.time, c.headers, c.payload, c.key_id, c.fingerprint, c.mode
      from unnest(digests, tenants, producers, ids, fingerprints, modes, message_keys, types, times, header_texts,
                  payloads, key_ids) with ordinality
        as c (digest, tenant, producer, id, fingerprint, mode, message_key, type, time, headers, payload, key_id, n)
     where cardinality(added) = cardinality(digests) or c.digest = any (added)
     order by c.n;
    if cardinality(added) = cardinality(digests) then
      return null;
    end if;
  end if;
  return ${schema}.not_new(digests, fingerprints, modes, added, suspect, generation is not null);
end
$function$;

drop function ${schema}.in_closed(uuid[]);
`;
