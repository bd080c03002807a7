import { quotedIn } from "./0009-claim-functions.ts";

/** Tables and functions of generations: nothing of them is in use until the first rotation. */
export const generations = (schema: string): string => `
create table ${schema}.message_closed (like ${schema}.message including all)
  with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000);
comment on table ${schema}.message_closed is
  'The generation before the open one, which is "message": only read, until it is emptied and the two change places. Holds nothing that is stored and not applied.';

create view ${schema}.ledger as
  select * from ${schema}.message union all select * from ${schema}.message_closed;
comment on view ${schema}.ledger is 'Both generations, for whatever only reads.';

create or replace view ${schema}.seen as
  select consumer, tenant, producer, message_id,
         case when processed_at is null then 'stored' else 'processed' end as state,
         processed_at, handler_version,
         encode(fingerprint, 'hex') as fingerprint, fingerprint_mode
    from ${schema}.ledger;

create sequence ${schema}.generation as bigint minvalue 1;
comment on sequence ${schema}.generation is
  'The number of the open generation, raised under the locks of a rotation. A sequence, because it has no snapshots. Never called: there was no rotation.';
grant select on sequence ${schema}.generation to public;

alter table ${schema}.retention_guard add column closed_at timestamptz;
comment on column ${schema}.retention_guard.closed_at is
  'When message_closed was closed: everything in it was applied before. Null: there was no rotation.';

create function ${schema}.in_closed(digests uuid[]) returns uuid[]
language plpgsql
volatile
as $function$
begin
  -- Its snapshot may be older than a rotation: then this fails with 40001, and the next attempt has a new one.
  if pg_catalog.current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform from ${schema}.retention_guard for share;
  end if;
  return (select array_agg(m.digest) from ${schema}.message_closed m where m.digest = any (digests));
end
$function$;
comment on function ${schema}.in_closed is 'Those that the closed generation holds.';

create function ${schema}.reserve_identity(
  identity uuid, consumer_name text, of_tenant text, of_producer text, id text, print bytea, print_mode text, version text)
returns boolean
language plpgsql
volatile
as $function$
begin
  insert into ${schema}.message
    (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
  values (identity, null, consumer_name, of_tenant, of_producer, id, print, print_mode, version)
  on conflict (digest) do nothing;
  if not found then
    return false;
  end if;
  -- Behind the insert, whose lock no rotation passes.
  if pg_catalog.pg_sequence_last_value(${quotedIn(schema, "generation")}) is not null
     and exists (select from ${schema}.message_closed m where m.digest = identity) then
    delete from ${schema}.message m where m.digest = identity;
    return false;
  end if;
  return true;
end
$function$;
comment on function ${schema}.reserve_identity is
  'Keeps an identity for a message whose body is stored elsewhere; false: it is there already. At read committed.';

create or replace function ${schema}.finish(version text, digests uuid[]) returns void
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
    -- A rotation moves stored identities, which a snapshot from before it does not see.
    if pg_catalog.current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
       and pg_catalog.pg_sequence_last_value(${quotedIn(schema, "generation")}) is not null then
      raise exception using errcode = 'serialization_failure',
        message = 'The ledger was rotated behind this snapshot. Roll back and try again.';
    end if;
    raise exception 'Of % pending messages % could be marked as processed: their identities are not as they were.',
      cardinality(digests), marked;
  end if;
end
$function$;

create function ${schema}.rotate(window_ms bigint, skew_ms bigint, not_after timestamptz) returns text
language plpgsql
volatile
-- What stays is found by the digests of pending and quarantine, never by a scan of a generation.
set enable_seqscan = off
as $function$
declare
  guard ${schema}.retention_guard%rowtype;
begin
  select * into guard from ${schema}.retention_guard for update;
  if guard.closed_at > least(pg_catalog.clock_timestamp() - window_ms * interval '1 millisecond', not_after) then
    return 'too young';
  end if;
  if guard.closed_at is not null
     and exists (select from ${schema}.retention r
                  where r.consumer <> '' and (r.window_ms is null or r.window_ms > rotate.window_ms)) then
    return 'window too short';
  end if;
  -- Waits for every transaction that has claimed, and lets none claim until the end.
  lock table ${schema}.message in access exclusive mode;
  lock table ${schema}.message_closed in access exclusive mode;
  perform pg_catalog.nextval(${quotedIn(schema, "generation")});
  if guard.closed_at is not null then
    insert into ${schema}.retention as r (consumer, producer, forgotten_to, horizon)
    values ('', '', guard.closed_at,
            date_trunc('milliseconds', guard.closed_at + (skew_ms + 1) * interval '1 millisecond'))
    on conflict (consumer, producer) do update
      set forgotten_to = greatest(r.forgotten_to, excluded.forgotten_to),
          horizon = greatest(r.horizon, excluded.horizon), changed_at = clock_timestamp();
    -- Of what was applied long ago, only that with an open entry.
    insert into ${schema}.message
    select m.* from ${schema}.message_closed m
     where m.digest in (select q.digest from ${schema}.quarantine q where q.status = 'open' and q.digest is not null)
    on conflict (digest) do nothing;
    truncate ${schema}.message_closed;
  end if;
  alter table ${schema}.message rename to message_open;
  alter table ${schema}.message_closed rename to message;
  alter table ${schema}.message_open rename to message_closed;
  -- By name, as the tables are called now.
  execute $move$
    with kept as (
      select p.digest, false as applied from ${schema}.pending p
      union all
      select q.digest, q.status = 'open' from ${schema}.quarantine q where q.digest is not null
    ), moved as (
      delete from ${schema}.message_closed m
       using (select k.digest, bool_or(k.applied) as applied from kept k group by k.digest) k
       where m.digest = k.digest and (m.processed_at is null or k.applied)
      returning m.*
    )
    insert into ${schema}.message select * from moved
  $move$;
  update ${schema}.retention_guard g
     set closed_at = pg_catalog.clock_timestamp(),
         mark = greatest(g.mark + 1, pg_catalog.pg_sequence_last_value(${quotedIn(schema, "horizon_mark")}) + 1,
                         (select ceil(extract(epoch from max(r.horizon)) * 1000)::bigint
                                        from ${schema}.retention r where r.horizon > '-infinity'));
  -- Before the locks go: whoever claims behind this rotation sees another mark than before it.
  perform pg_catalog.setval(${quotedIn(schema, "horizon_mark")}, (select g.mark from ${schema}.retention_guard g));
  return 'rotated';
end
$function$;
comment on function ${schema}.rotate is
  'Closes the open generation and opens an empty one, in a transaction of its own at read committed, with a short lock_timeout; forgets the one that was closed before, if that was long enough ago. For the owner of the tables.';
`;
