import type { Migration } from "./migration.ts";

/** Who owns the logs that are read in strict order. */
export const migration0006: Migration = {
  version: 6,
  name: "log-owner",
  sql: (schema) => `
create table ${schema}.log_taker (
  consumer  text collate "C" not null,
  log       text collate "C" not null,
  epoch     bigint not null,
  taken_at  timestamptz not null default clock_timestamp(),
  constraint log_taker_pkey primary key (consumer, log)
);
comment on table ${schema}.log_taker is
  'Who wants or owns a log that is read in strict order: raised at once by each new owner, so that nothing of the one before begins any more.';
comment on column ${schema}.log_taker.epoch is 'Raised by each new owner.';

create table ${schema}.log_owner (
  consumer  text collate "C" not null,
  log       text collate "C" not null,
  epoch     bigint not null,
  constraint log_owner_pkey primary key (consumer, log)
);
comment on table ${schema}.log_owner is
  'One row for each log (a partition of a Kafka topic) that a consumer reads in strict order. Lane transactions hold it "for share" under their epoch; a new owner sets its own, which waits for them.';
comment on column ${schema}.log_owner.epoch is 'Of log_taker, once everything of the owner before has ended.';
`,
};
