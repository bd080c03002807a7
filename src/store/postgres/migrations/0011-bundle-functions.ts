/** Functions of step 11 that store bundles of effects and unpack them. */
export const bundleFunctions = (schema: string): string => `
create function ${schema}.outbox_bundle_up(
  destination_name text, tenants text, producers text, ids text, keys text, types text, times text, headers text,
  payloads text, size integer)
returns void
language plpgsql
volatile
as $function$
begin
  -- Before the place: whoever waits for all transactions of a moment waits for all places given out by then.
  perform pg_current_xact_id();
  insert into ${schema}.outbox_bundle
    (position, size, destination, tenants, producers, ids, keys, types, times, headers, payloads)
  values (nextval('${schema}.outbox_position'), size, destination_name, tenants, producers, ids, keys, types, times,
          headers, payloads);
end
$function$;
comment on function ${schema}.outbox_bundle_up is
  'Stores effects to one destination in the current transaction, up to 1,024 of them. Their ids must follow from messages that it has claimed.';

create function ${schema}.outbox_unpack(destination_name text, most integer) returns integer
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $function$
#variable_conflict use_column
declare
  bundle record;
  unpacked integer := 0;
begin
  while unpacked < most loop
    -- Two relays may unpack at once: nothing behind a bundle that is still there is handed out.
    delete from ${schema}.outbox_bundle b
     where b.position = (select f.position from ${schema}.outbox_bundle f
                          where f.destination = destination_name
                          order by f.position limit 1
                            for update skip locked)
    returning b.* into bundle;
    exit when not found;
    unpacked := unpacked + bundle.size;
    with effect as materialized (
      select bundle.position + e.n - 1 as place, e.tenant, e.producer, e.id, e.key, e.type, e.time, e.headers,
             decode(e.payload, 'base64') as payload,
             substr(encode(sha256(convert_to(
               octet_length(destination_name) || ':' || destination_name || octet_length(e.tenant) || ':' || e.tenant ||
               octet_length(e.producer) || ':' || e.producer || octet_length(e.id) || ':' || e.id, 'utf8')), 'hex'), 1, 32)::uuid as digest,
             case when e.payload is null then ''::bytea else sha256(decode(e.payload, 'base64')) end as fingerprint
        from unnest(bundle.tenants::text[], bundle.producers::text[], bundle.ids::text[], bundle.keys::text[],
                    bundle.types::text[], bundle.times::text[], bundle.headers::text[], bundle.payloads::text[])
             with ordinality as e (tenant, producer, id, key, type, time, headers, payload, n)
    ), new as (
      insert into ${schema}.outbox_id as f (digest, position, fingerprint)
      select e.digest, e.place, e.fingerprint from effect e order by e.digest
      on conflict (digest) do nothing
      returning f.digest
    ), fresh as (
      select e.*, f.digest is not null as conflicts
        from effect e
        left join new n on n.digest = e.digest
        left join ${schema}.outbox_id f on f.digest = e.digest and f.fingerprint <> e.fingerprint
       where n.digest is not null or f.digest is not null
    ), stored as (
      insert into ${schema}.outbox
        (position, destination, lane, state, asked_at, digest, tenant, producer, effect_id, effect_key, effect_type,
         effect_time, headers, payload, last_at, last_code, last_error)
      select e.place, destination_name,
             (case when e.key is null then get_byte(uuid_send(e.digest), 0)
                   else get_byte(sha256(convert_to(e.key, 'utf8')), 0) end) % 64,
             case when e.conflicts then 'aside' else 'ready' end, bundle.asked_at, e.digest, e.tenant, e.producer, e.id,
             e.key, e.type, e.time, e.headers, e.payload, case when e.conflicts then clock_timestamp() end,
             case when e.conflicts then 'effect-conflict' end,
             case when e.conflicts then 'The effect was asked for before with another payload.' end
        from fresh e
       order by e.place
      returning *
    )
    insert into ${schema}.outbox_refusal
      (position, attempts, payload_bytes, asked_at, refused_at, digest, holds_key, destination, tenant, producer, effect_id,
       effect_key, effect_type, code, error_group, error, error_shape)
    select s.position, 0, coalesce(octet_length(s.payload), 0), s.asked_at, s.last_at, s.digest, false, s.destination,
           s.tenant, s.producer, s.effect_id, s.effect_key, s.effect_type, s.last_code,
           substr(encode(sha256(convert_to(s.last_code || chr(10) || s.last_error, 'utf8')), 'hex'), 1, 16),
           s.last_error, s.last_error
      from stored s
     where s.state = 'aside';
  end loop;
  return unpacked;
end
$function$;
comment on function ${schema}.outbox_unpack is
  'Makes effects of the first bundles of a destination, until there are at least so many or none is left that another transaction does not unpack. Returns how many.';
`;
