import type { Migration } from "./migration.ts";
import { notNewFunction } from "./not-new-function.ts";

/** Decisions on quarantine entries: who, when, why, what; groups of failures that look alike; repairs. */
export const migration0004: Migration = {
  version: 4,
  name: "decisions",
  sql: (schema) => `
create table ${schema}.decision (
  id           bigint generated always as identity,
  kind         text collate "C" not null,
  decided_at   timestamptz not null default clock_timestamp(),
  decided_by   text not null,
  reason       text not null,
  filter       text,
  matched      integer not null,
  decided      integer not null default 0,
  skipped      integer not null default 0,
  finished_at  timestamptz,
  constraint decision_pkey primary key (id),
  constraint decision_kind check (kind in ('retry', 'repair', 'discard', 'purge'))
);
create index decision_unfinished on ${schema}.decision (id) where finished_at is null;
comment on table ${schema}.decision is
  'What a person decided on messages in quarantine. Stays when the entries are purged.';
comment on column ${schema}.decision.filter is
  'JSON: which entries were meant, where they were chosen by a filter; else the entry''s id.';
comment on column ${schema}.decision.matched is 'How many entries it is about.';
comment on column ${schema}.decision.skipped is
  'Entries that somebody else had decided on by then, or that could not be retried; they stayed as they were.';
comment on column ${schema}.decision.finished_at is 'Null: batches are left, see decision_batch.';

create table ${schema}.decision_batch (
  decision_id  bigint not null,
  batch        integer not null,
  entry_ids    bigint[] not null,
  constraint decision_batch_pkey primary key (decision_id, batch)
);
comment on table ${schema}.decision_batch is
  'Entries that a decision on many has yet to reach. Each batch goes in the transaction that applies it.';

create table ${schema}.repair (
  entry_id          bigint not null,
  digest            uuid not null,
  tenant            text collate "C" not null,
  producer          text collate "C" not null,
  message_id        text collate "C" not null,
  payload           bytea,
  payload_key_id    text collate "C",
  fingerprint       bytea not null,
  fingerprint_mode  text collate "C" not null,
  constraint repair_pkey primary key (entry_id)
);
create index repair_digest on ${schema}.repair (digest, entry_id);
comment on table ${schema}.repair is
  'What was given back to be handled in place of an entry''s own body, beside which it stays. Its fingerprint is known to the claim as the first body''s is.';

alter table ${schema}.quarantine
  add column error_group text collate "C",
  add column error_shape text,
  add column payload_bytes integer,
  add column again_of bigint,
  add column decision_id bigint,
  add column decided_at timestamptz,
  add column import_key text collate "C";
update ${schema}.quarantine
   set error_shape = left(error, 300),
       error_group = substr(encode(sha256(convert_to(code || chr(10) || left(error, 300), 'utf8')), 'hex'), 1, 16),
       payload_bytes = coalesce(octet_length(payload), 0),
       decided_at = case when status <> 'open' then last_failed_at end;
alter table ${schema}.quarantine
  alter column error_group set not null,
  alter column error_shape set not null,
  alter column payload_bytes set not null,
  add constraint quarantine_decided check ((status = 'open') = (decided_at is null));
create index quarantine_group on ${schema}.quarantine (consumer, code, error_group) where status = 'open';
create index quarantine_open_list on ${schema}.quarantine (id) where status = 'open';
create index quarantine_digest on ${schema}.quarantine (digest, id) where digest is not null;
create index quarantine_decided_at on ${schema}.quarantine (decided_at) where status <> 'open';
create unique index quarantine_import on ${schema}.quarantine (import_key) where import_key is not null;
comment on column ${schema}.quarantine.status is
  'open: waits for a decision. retried: given back to be handled as it is. repaired: likewise, with what the table repair holds. discarded: will not be handled.';
comment on column ${schema}.quarantine.error_group is
  'The same for entries of one code whose errors differ only in numbers, ids and quoted texts.';
comment on column ${schema}.quarantine.error_shape is 'The error with those parts masked.';
comment on column ${schema}.quarantine.payload_bytes is 'Of the payload as it came, sealed or not.';
comment on column ${schema}.quarantine.again_of is
  'The entry of the same message that was retried or repaired before, and failed again.';
comment on column ${schema}.quarantine.import_key is 'Of the exported entry that it was imported from.';
${notNewFunction(schema, { repairs: true })}`,
};
