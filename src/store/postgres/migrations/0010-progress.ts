import type { Migration } from "./migration.ts";
import { progressFunctions } from "./0010-progress-functions.ts";

/** How far sources have come, who forgets, where in the ledger there is something to forget, and what was decided on it. */
export const migration0010: Migration = {
  version: 10,
  name: "progress",
  sql: (schema) => `
create table ${schema}.source_clock (
  consumer      text collate "C" not null,
  source        text collate "C" not null,
  since         timestamptz,
  caught_up_at  timestamptz,
  advanced_at   timestamptz,
  every_ms      integer not null,
  constraint source_clock_pkey primary key (consumer, source)
);
comment on table ${schema}.source_clock is
  'How far each source of a consumer has come. The age of identities is counted by this clock, which stands still while a source makes no progress.';
comment on column ${schema}.source_clock.since is 'When it was caught up for the first time: nothing is known of the time before.';
comment on column ${schema}.source_clock.caught_up_at is
  'Everything the source had at this time is settled. Null: it has not caught up since it was first seen.';
comment on column ${schema}.source_clock.advanced_at is 'When that was last reported.';
comment on column ${schema}.source_clock.every_ms is
  'How often its workers report. Without an advance for four times as long it makes no progress.';

create table ${schema}.source_worker (
  consumer      text collate "C" not null,
  source        text collate "C" not null,
  worker_id     uuid not null,
  caught_up_at  timestamptz,
  seen_until    timestamptz not null,
  constraint source_worker_pkey primary key (consumer, source, worker_id)
);
comment on table ${schema}.source_worker is
  'What each running worker of a source has reported. Without a new report it has no say from seen_until on.';

create table ${schema}.source_stop (
  consumer  text collate "C" not null,
  source    text collate "C" not null,
  from_at   timestamptz not null,
  to_at     timestamptz not null,
  constraint source_stop_pkey primary key (consumer, source, to_at)
);
comment on table ${schema}.source_stop is
  'Times in which a source made no progress: they do not count as age. Rows go when nothing as old is left to forget.';

create table ${schema}.cleanup (
  only_row       boolean not null default true,
  lease_token    bigint not null default 0,
  worker_id      uuid,
  leased_until   timestamptz not null default '-infinity',
  ledger_file    oid,
  started_at     timestamptz,
  finished_at    timestamptz,
  identities     bigint not null default 0,
  last_error     text,
  constraint cleanup_pkey primary key (only_row),
  constraint cleanup_only_row check (only_row)
);
insert into ${schema}.cleanup default values;
comment on table ${schema}.cleanup is 'One row: which worker forgets identities, until when, and what its last sweep did.';
comment on column ${schema}.cleanup.lease_token is 'Raised with each taking. Whoever holds an older one may forget nothing.';
comment on column ${schema}.cleanup.ledger_file is
  'The file of the table message that ledger_stretch tells of. After a rewrite of the table it is another one.';
comment on column ${schema}.cleanup.identities is 'Forgotten by the last sweep, or by the one that runs.';

create table ${schema}.ledger_stretch (
  first_page  bigint not null,
  consumer    text collate "C" not null,
  oldest      timestamptz not null,
  constraint ledger_stretch_pkey primary key (first_page, consumer)
);
comment on table ${schema}.ledger_stretch is
  'For each 16 pages of the table message: nothing of the consumer in there was applied before this. What comes in is younger, so it stays true without an index that claims would have to write. Consumer "": when they were looked at.';

create table ${schema}.retention_decision (
  id          bigint generated always as identity,
  kind        text collate "C" not null,
  decided_at  timestamptz not null default clock_timestamp(),
  decided_by  text not null,
  reason      text not null,
  consumer    text collate "C" not null,
  subject     text not null,
  constraint retention_decision_pkey primary key (id),
  constraint retention_decision_kind check (kind in ('window', 'retire', 'erase'))
);
comment on table ${schema}.retention_decision is
  'What people decided on keeping: a window, a source that will not come back, a body that was erased. Rows stay.';
comment on column ${schema}.retention_decision.subject is 'JSON: what it was about.';

-- At the default fifth of the table, vacuum would come after days: the space would not be used again before.
alter table ${schema}.message set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000);
${progressFunctions(schema)}`,
};
