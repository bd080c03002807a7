import type { Migration } from "./migration.ts";

/** The identity ledger, failed attempts, quarantine, workers and source positions. */
export const migration0001: Migration = {
  version: 1,
  name: "inbox",
  sql: (schema) => `
create table ${schema}.message (
  digest            uuid not null,
  processed_at      timestamptz,
  consumer          text collate "C" not null,
  tenant            text collate "C" not null,
  producer          text collate "C" not null,
  message_id        text collate "C" not null,
  fingerprint       bytea not null,
  fingerprint_mode  text collate "C" not null,
  handler_version   text collate "C" not null,
  constraint message_pkey primary key (digest)
);
comment on table ${schema}.message is
  'One row for each identity a consumer has taken. The insert is the claim; it commits with the work. In bytes at most: consumer 128, tenant 256, producer 512, message_id 1024.';
comment on column ${schema}.message.digest is
  'The first 16 bytes of SHA-256 over consumer, tenant, producer and id, each with its length in front. The unique key.';
comment on column ${schema}.message.processed_at is
  'Start of the transaction that applied it, by the database clock. Null: the body is kept elsewhere (quarantine) and is not applied.';
comment on column ${schema}.message.fingerprint is
  'SHA-256 of the payload in the way fingerprint_mode says; empty for a message without payload.';
comment on column ${schema}.message.fingerprint_mode is
  'b: of the bytes. j: of canonical JSON. j-/a,/b: of canonical JSON without these JSON pointers.';

create table ${schema}.attempt (
  id               bigint generated always as identity primary key,
  digest           uuid not null,
  consumer         text collate "C" not null,
  tenant           text collate "C" not null,
  producer         text collate "C" not null,
  message_id       text collate "C" not null,
  failed_at        timestamptz not null default clock_timestamp(),
  code             text collate "C" not null,
  error            text not null,
  handler_version  text collate "C" not null
);
create index attempt_digest on ${schema}.attempt (digest, id);
comment on table ${schema}.attempt is
  'One row for each failed attempt that counts, written after its rollback in a transaction of its own.';

create table ${schema}.quarantine (
  id                bigint generated always as identity primary key,
  status            text collate "C" not null default 'open',
  consumer          text collate "C" not null,
  digest            uuid,
  tenant            text collate "C",
  producer          text collate "C",
  message_id        text collate "C",
  raw_identity      text,
  message_key       text collate "C",
  message_type      text collate "C",
  headers           text not null,
  payload           bytea,
  fingerprint       bytea not null,
  fingerprint_mode  text collate "C" not null,
  code              text collate "C" not null,
  error             text not null,
  attempts          integer not null,
  deliveries        integer not null default 1,
  first_failed_at   timestamptz not null,
  last_failed_at    timestamptz not null,
  handler_version   text collate "C" not null,
  constraint quarantine_status check (status in ('open', 'retried', 'repaired', 'discarded')),
  constraint quarantine_identity check ((digest is null) = (message_id is null))
);
create unique index quarantine_open on ${schema}.quarantine (digest, fingerprint) where status = 'open' and digest is not null;
create index quarantine_consumer on ${schema}.quarantine (consumer, id);
comment on table ${schema}.quarantine is
  'Messages that wait for a decision: rejected, in conflict, or failed as often as allowed. Payloads are kept as they came.';
comment on column ${schema}.quarantine.raw_identity is
  'Where the identity could not be used: what came in its place, as JSON text.';
comment on column ${schema}.quarantine.payload is 'The body as it came; null for a message without one.';

create table ${schema}.worker (
  id             uuid primary key,
  consumer       text collate "C" not null,
  started_at     timestamptz not null default clock_timestamp(),
  lease_until    timestamptz not null,
  closed_at      timestamptz
);
create index worker_open on ${schema}.worker (consumer, lease_until) where closed_at is null;
comment on table ${schema}.worker is
  'One row for each running consumer process. A lease that ran out without closed_at is an unclean death.';

create table ${schema}.started (
  digest      uuid not null,
  worker_id   uuid not null,
  started_at  timestamptz not null default clock_timestamp(),
  primary key (digest, worker_id)
);
comment on table ${schema}.started is
  'Committed before a suspect message runs. A mark whose worker died uncleanly is a crash of that message.';

create table ${schema}.cursor (
  consumer    text collate "C" not null,
  source      text collate "C" not null,
  position    text not null,
  updated_at  timestamptz not null default clock_timestamp(),
  primary key (consumer, source)
);
comment on table ${schema}.cursor is
  'How far a source without a memory of its own has been settled. A hint that saves reading; it decides nothing.';

create function ${schema}.claim(
  consumer_name text, version text, lock_timeout_ms integer,
  digests uuid[], tenants text[], producers text[], ids text[], fingerprints bytea[], modes text[])
returns text
language plpgsql
volatile
set lock_timeout = 0
as $function$
declare
  claimed uuid[];
begin
  -- Local to this function: the "set" clause above restores the caller's own lock_timeout when it returns.
  perform pg_catalog.set_config('lock_timeout', lock_timeout_ms::text, true);
  if cardinality(digests) = 1 then
    insert into ${schema}.message
      (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
    values (digests[1], pg_catalog.now(), consumer_name, tenants[1], producers[1], ids[1], fingerprints[1], modes[1], version)
    on conflict (digest) do nothing;
    if found then
      return null;
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
    select array_agg(added.digest) into claimed from added;
    if cardinality(claimed) = cardinality(digests) then
      return null;
    end if;
  end if;
  return (
    select json_agg(json_build_array(c.digest, m.tenant, m.producer, m.message_id, encode(m.fingerprint, 'hex'),
                                     m.fingerprint_mode, m.processed_at is not null))
      from unnest(digests) as c (digest)
      left join ${schema}.message m on m.digest = c.digest
     where claimed is null or c.digest <> all (claimed));
end
$function$;
comment on function ${schema}.claim is
  'Claims messages in the current transaction. Null if all were new; else a JSON array with a row for each that was not, and what is committed for it.';

create view ${schema}.seen as
  select consumer, tenant, producer, message_id,
         case when processed_at is null then 'stored' else 'processed' end as state,
         processed_at, handler_version,
         encode(fingerprint, 'hex') as fingerprint, fingerprint_mode
    from ${schema}.message;
comment on view ${schema}.seen is 'What each consumer has taken, for people. Tables may change between releases; this view does not.';
`,
};
