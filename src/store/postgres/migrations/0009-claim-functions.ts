/** A sequence of the schema as a constant, whatever the schema is called. */
export const quotedIn = (schema: string, name: string): string =>
  `'${schema.replaceAll("'", "''")}.${name}'::regclass`;

/**
 * The functions that take messages, with a horizon: what was sent before it is never taken, only looked up. Read before
 * the insert and again behind it, the mark tells whether anything was forgotten in between: deleting begins behind the
 * mark of what is deleted, so whoever inserts where a row was deleted sees another mark than before, whatever its
 * snapshot is. `docs/decisions/0012` has the proof.
 */
export const claimWithHorizon = (schema: string): string => `
create function ${schema}.suspects(consumer_name text, digests uuid[], producers text[], sent bigint[]) returns uuid[]
language plpgsql
volatile
as $function$
begin
  -- Its snapshot may be older than a change of retention: then this fails with 40001, and the next attempt has a new one.
  if pg_catalog.current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform from ${schema}.retention_guard for share;
  end if;
  return (
    select array_agg(c.digest)
      from unnest(digests, producers, sent) as c (digest, producer, sent)
      left join ${schema}.retention own on own.consumer = consumer_name and own.producer = c.producer
      left join ${schema}.retention whole on whole.consumer = consumer_name and whole.producer = ''
      left join ${schema}.retention everyone on everyone.consumer = '' and everyone.producer = ''
     where pg_catalog.to_timestamp(c.sent / 1000::double precision)
             < greatest(coalesce(own.horizon, whole.horizon), everyone.horizon));
end
$function$;
comment on function ${schema}.suspects is
  'Messages that were sent before their horizon: if they are not in the ledger nobody can tell whether they were applied. Times in milliseconds since 1970; null: not known.';

create function ${schema}.refuse_moved(
  consumer_name text, digests uuid[], producers text[], sent bigint[], taken uuid[], generation bigint) returns void
language plpgsql
volatile
as $function$
begin
  if pg_catalog.pg_sequence_last_value(${quotedIn(schema, "generation")}) is distinct from generation
     or exists (select from unnest(${schema}.suspects(consumer_name, digests, producers, sent)) as s (digest)
                 where taken is null or s.digest = any (taken)) then
    raise exception using errcode = 'serialization_failure',
      message = 'What is forgotten changed while a message was claimed. Roll back and try again.';
  end if;
end
$function$;
comment on function ${schema}.refuse_moved is
  'For a claim that finds another mark behind its insert: fails with 40001 if another generation is open, or if one of those taken (null: any) was sent before its horizon by now.';

drop function ${schema}.claim(text, text, integer, uuid[], text[], text[], text[], bytea[], text[]);
create function ${schema}.claim(
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
    -- First: it waits for a rotation that has begun, and then the horizon is what that has made of it.
    if generation is not null then
      aside := ${schema}.in_closed(digests);
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
comment on function ${schema}.claim is
  'Claims messages in the current transaction. Null if all were new; else a JSON array with a row for each that was not, and what is committed for it, or whether it is late. With "parked" in front if any key of the consumer is parked. 40001: the horizon moved meanwhile.';

drop function ${schema}.accept(text, text, integer, uuid[], text[], text[], text[], bytea[], text[], text[], text[], text[], text[], bytea[], text[]);
create function ${schema}.accept(
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
    -- First: it waits for a rotation that has begun, and then the horizon is what that has made of it.
    if generation is not null then
      aside := ${schema}.in_closed(digests);
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
comment on function ${schema}.accept is
  'Stores messages for later: identity and body. Answers as claim does, without the word for parked keys.';

drop function ${schema}.not_new(uuid[], bytea[], text[], uuid[]);
create function ${schema}.not_new(
  digests uuid[], fingerprints bytea[], modes text[], taken uuid[], suspect uuid[], closed boolean)
returns text
language plpgsql
volatile
as $function$
begin
  if closed then
    ${answerFrom(schema, "ledger")}
  else
    ${answerFrom(schema, "message")}
  end if;
end
$function$;
comment on function ${schema}.not_new is
  'For each message that is not among those taken, what is committed for its identity, and whether it is late: a JSON array of rows. A function of its own sees what the insert waited for.';
`;

/** Without a closed generation the look into it is saved: duplicates come by the thousand. */
const answerFrom = (schema: string, table: "ledger" | "message"): string => `return (
      select json_agg(json_build_array(
               c.digest, m.tenant, m.producer, m.message_id, encode(coalesce(r.fingerprint, m.fingerprint), 'hex'),
               coalesce(r.fingerprint_mode, m.fingerprint_mode), m.processed_at is not null,
               m.digest is null and c.digest = any (suspect) is true))
        from unnest(digests, fingerprints, modes) as c (digest, fingerprint, mode)
        left join ${schema}.${table} m on m.digest = c.digest
        left join lateral (
          select o.fingerprint, o.fingerprint_mode from ${schema}.repair o
           where m.fingerprint <> c.fingerprint
             and o.digest = c.digest and o.fingerprint = c.fingerprint and o.fingerprint_mode = c.mode
           limit 1) r on true
       where taken is null or c.digest <> all (taken));`;
