import type { Migration } from "./migration.ts";

/** Replays by policy: who, when, why, how far; and consumers that are retired. */
export const migration0008: Migration = {
  version: 8,
  name: "replay",
  sql: (schema) => `
create table ${schema}.replay (
  id               bigint generated always as identity,
  policy           text collate "C" not null,
  consumer         text collate "C" not null,
  of_consumer      text collate "C",
  source           text collate "C" not null,
  effects          text collate "C" not null,
  handler_version  text collate "C" not null,
  rate             integer,
  resumes          bigint,
  decided_by       text not null,
  reason           text not null,
  started_at       timestamptz not null default clock_timestamp(),
  seen_at          timestamptz not null default clock_timestamp(),
  ended_at         timestamptz,
  ended            text collate "C",
  error            text,
  counts           jsonb not null default '{}',
  constraint replay_pkey primary key (id),
  constraint replay_policy check (policy in ('rebuild', 'projection', 'compensate')),
  constraint replay_effects check (effects in ('refuse', 'drop', 'send')),
  constraint replay_ended check (ended in ('done', 'stopped', 'failed')),
  constraint replay_ended_at check ((ended is null) = (ended_at is null))
);
create index replay_consumer on ${schema}.replay (consumer, id);
comment on table ${schema}.replay is
  'One row for each run of a replay: what a person decided to do again, under which policy. It decides nothing: what was replayed is in the ledger, under the name in consumer.';
comment on column ${schema}.replay.consumer is 'Under which name messages were taken; never the original''s.';
comment on column ${schema}.replay.of_consumer is 'The original consumer.';
comment on column ${schema}.replay.rate is 'Messages a second at most; null: as fast as it can.';
comment on column ${schema}.replay.resumes is 'The earlier run that did not come to its end and was gone on with.';
comment on column ${schema}.replay.seen_at is 'The last sign of life: counts are as of then.';
comment on column ${schema}.replay.ended is
  'done: the source came to its end. stopped: somebody stopped it. failed: see error. Null: it runs, or its process died.';

create table ${schema}.retired_consumer (
  consumer    text collate "C" not null,
  successor   text collate "C" not null,
  retired_at  timestamptz not null default clock_timestamp(),
  decided_by  text not null,
  reason      text not null,
  applied     bigint not null,
  missing     bigint not null,
  constraint retired_consumer_pkey primary key (consumer)
);
comment on table ${schema}.retired_consumer is
  'Consumers that another one has taken over from. Their workers end, and no new one starts.';
comment on column ${schema}.retired_consumer.applied is 'How many messages it had applied.';
comment on column ${schema}.retired_consumer.missing is
  'How many of those its successor had not applied when it was retired: 0, unless somebody said that they may be left out.';
`,
};
