import { claimWithHorizon } from "./0009-claim-functions.ts";
import { generations } from "./0009-generations.ts";
import type { Migration } from "./migration.ts";

/** What is known to be forgotten: windows, horizons, and a mark that every transaction sees as it is now. */
export const migration0009: Migration = {
  version: 9,
  name: "retention",
  sql: (schema) => `
create table ${schema}.retention (
  consumer      text collate "C" not null,
  producer      text collate "C" not null,
  window_ms     bigint,
  forgotten_to  timestamptz not null default '-infinity',
  horizon       timestamptz not null default '-infinity',
  changed_at    timestamptz not null default clock_timestamp(),
  constraint retention_pkey primary key (consumer, producer),
  constraint retention_window check (window_ms > 0),
  constraint retention_horizon check (horizon >= forgotten_to)
);
comment on table ${schema}.retention is
  'How long identities are kept, and what has been forgotten. One row for a consumer, and one for each of its producers that has a window of its own.';
comment on column ${schema}.retention.consumer is 'Empty, with an empty producer: of all consumers.';
comment on column ${schema}.retention.producer is 'Empty: all producers without a row of their own.';
comment on column ${schema}.retention.window_ms is 'Null: nothing is forgotten any more.';
comment on column ${schema}.retention.forgotten_to is
  'Identities applied before this may be gone. Moves forward only, and before anything goes.';
comment on column ${schema}.retention.horizon is
  'The same for when messages were sent: later by how far a producer''s clock may run ahead. A message sent before it that is not in the ledger is late.';

create table ${schema}.retention_guard (
  one   boolean not null default true,
  mark  bigint not null default 0,
  constraint retention_guard_pkey primary key (one),
  constraint retention_guard_one check (one)
);
insert into ${schema}.retention_guard default values;
comment on table ${schema}.retention_guard is
  'One row, written with each change of retention. A transaction whose snapshot is older than the change cannot lock it (40001).';
comment on column ${schema}.retention_guard.mark is
  'What horizon_mark is to be: in milliseconds since 1970, no earlier than any horizon, and another one after each change.';

create sequence ${schema}.horizon_mark as bigint minvalue 0;
comment on sequence ${schema}.horizon_mark is
  'The guard''s mark, set behind the commit of a change and before anything is deleted. A sequence, because it has no snapshots: whoever inserts where something was deleted sees the mark of it. Never called: nothing was ever forgotten.';

-- Who may not read it would take it for never called, without an error.
grant select on sequence ${schema}.horizon_mark to public;

alter table ${schema}.decision
  drop constraint decision_kind,
  add constraint decision_kind check (kind in ('retry', 'apply', 'repair', 'discard', 'purge'));

create function ${schema}.publish_horizon() returns void
language plpgsql
as $function$
declare
  wanted bigint;
begin
  -- Held to the end, so that the mark of an earlier change never comes behind that of a later one.
  select mark into wanted from ${schema}.retention_guard for share;
  if wanted > 0 and pg_catalog.pg_sequence_last_value('${schema.replaceAll("'", "''")}.horizon_mark'::regclass) is distinct from wanted then
    perform pg_catalog.setval('${schema.replaceAll("'", "''")}.horizon_mark'::regclass, wanted);
  end if;
end
$function$;
comment on function ${schema}.publish_horizon is
  'Makes the last committed change of retention known to all claims. At read committed, in a transaction behind that of the change.';
${generations(schema)}${claimWithHorizon(schema)}`,
};
