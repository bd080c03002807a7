import { notNewFunction } from "./not-new-function.ts";

/** Functions of step 3 that take a message: at once, for later, or out of pending. */
export const claimFunctions = (schema: string): string => `
create function ${schema}.lane_of(message_key text, digest uuid) returns smallint
language sql immutable parallel safe
return (case when message_key is null then get_byte(uuid_send(digest), 0)
             else hashtextextended(message_key collate "C", 0) end & 63)::smallint;
comment on function ${schema}.lane_of is
  'The lane of a message, 0 to 63: by its key, or without one by its identity. By the hash that hash partitions rest on: it is the same in every version, and no cipher that a server in FIPS mode refuses.';

${notNewFunction(schema)}
create or replace function ${schema}.claim(
  consumer_name text, version text, lock_timeout_ms integer,
  digests uuid[], tenants text[], producers text[], ids text[], fingerprints bytea[], modes text[])
returns text
language plpgsql
volatile
set lock_timeout = 0
as $function$
declare
  claimed uuid[];
  parked boolean;
begin
  -- Local to this function: the "set" clause above restores the caller's own lock_timeout when it returns.
  perform pg_catalog.set_config('lock_timeout', lock_timeout_ms::text, true);
  -- Whether keys are parked is asked in the same statement: 4 us of the server's time a call, by itself 6.
  if cardinality(digests) = 1 then
    insert into ${schema}.message
      (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
    values (digests[1], pg_catalog.now(), consumer_name, tenants[1], producers[1], ids[1], fingerprints[1], modes[1], version)
    on conflict (digest) do nothing
    returning exists (select from ${schema}.parked_key where consumer = consumer_name) into parked;
    if found then
      return case when parked then 'parked' end;
    end if;
  else
    with added as (
      insert into ${schema}.message as m
        (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
      select c.digest, pg_catalog.now(), consumer_name, c.tenant, c.producer, c.id, c.fingerprint, c.mode, version
        from unnest(digests, tenants, producers, ids, fingerprints, modes)
          as c (digest, tenant, producer, id, fingerprint, mode)
       order by c.digest
      on conflict (digest) do nothing
      returning m.digest
    )
    select array_agg(added.digest), exists (select from ${schema}.parked_key where consumer = consumer_name)
      into claimed, parked
      from added;
    if cardinality(claimed) = cardinality(digests) then
      return case when parked then 'parked' end;
    end if;
  end if;
  return concat(case when parked then 'parked' end, ${schema}.not_new(digests, fingerprints, modes, claimed));
end
$function$;
comment on function ${schema}.claim is
  'Claims messages in the current transaction. Null if all were new; else a JSON array with a row for each that was not, and what is committed for it. With "parked" in front if any key of the consumer is parked.';

create function ${schema}.accept(
  consumer_name text, version text, lock_timeout_ms integer,
  digests uuid[], tenants text[], producers text[], ids text[], fingerprints bytea[], modes text[],
  message_keys text[], types text[], times text[], header_texts text[], payloads bytea[], key_ids text[])
returns text
language plpgsql
volatile
set lock_timeout = 0
as $function$
declare
  added uuid[];
begin
  perform pg_catalog.set_config('lock_timeout', lock_timeout_ms::text, true);
  with new as (
    insert into ${schema}.message as m
      (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
    select c.digest, null, consumer_name, c.tenant, c.producer, c.id, c.fingerprint, c.mode, version
      from unnest(digests, tenants, producers, ids, fingerprints, modes)
        as c (digest, tenant, producer, id, fingerprint, mode)
     order by c.digest
    on conflict (digest) do nothing
    returning m.digest
  )
  select array_agg(new.digest) into added from new;
  if added is not null then
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
  return ${schema}.not_new(digests, fingerprints, modes, added);
end
$function$;
comment on function ${schema}.accept is
  'Stores messages for later: identity and body. Answers as claim does, without the word for parked keys.';

create function ${schema}.hold(
  consumer_name text, lock_timeout_ms integer, digests uuid[], lanes smallint[], tokens bigint[])
returns text
language plpgsql
volatile
set lock_timeout = 0
as $function$
declare
  held uuid[];
begin
  perform pg_catalog.set_config('lock_timeout', lock_timeout_ms::text, true);
  -- "For key share" lets the lease be renewed meanwhile. The rows are waited for and never skipped: whoever holds one is
  -- an earlier owner, and the followers must not overtake it.
  with valid as materialized (
    select l.lane, l.lease_token
      from ${schema}.pending_lane l
     where l.consumer = consumer_name and l.leased_until > clock_timestamp()
       and (l.lane, l.lease_token) in (select * from unnest(lanes, tokens))
       for key share
  ), locked as materialized (
    select p.digest
      from unnest(digests, lanes, tokens) as c (digest, lane, token)
      join valid v on v.lane = c.lane and v.lease_token = c.token
      join ${schema}.pending p on p.digest = c.digest and p.state <> 'behind'
     order by p.position
       for update of p
  )
  select array_agg(locked.digest) into held from locked;
  if cardinality(held) = cardinality(digests) then
    return null;
  end if;
  return (select json_agg(c.digest) from unnest(digests) as c (digest) where held is null or c.digest <> all (held));
end
$function$;
comment on function ${schema}.hold is
  'Locks pending messages in the current transaction, under the leases of their lanes. Null if all; else a JSON array of those that are not this worker''s any more.';

create function ${schema}.finish(version text, digests uuid[]) returns void
language plpgsql
volatile
as $function$
declare
  marked integer;
begin
  with gone as (
    delete from ${schema}.pending where digest = any (digests) returning digest
  ), done as (
    update ${schema}.message m
       set processed_at = pg_catalog.now(), handler_version = version
      from gone
     where m.digest = gone.digest and m.processed_at is null
    returning 1
  )
  select count(*) into marked from done;
  if marked <> cardinality(digests) then
    raise exception 'Of % pending messages % could be marked as processed: their identities are not as they were.',
      cardinality(digests), marked;
  end if;
end
$function$;
comment on function ${schema}.finish is
  'Takes messages that "hold" locked out of pending and marks their identities as processed: the claim of what was pending. All of them, or an error.';
`;
