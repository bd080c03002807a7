import type { Migration } from "./migration.ts";

/** Who owns the logs that are read in strict order. */
export const migration0006: Migration = {
  version: 6,
  name: "log-owner",
  sql: (schema) => `
create table ${schema}.log_owner (
  consumer  text collate "C" not null,
  log       text collate "C" not null,
  epoch     bigint not null,
  taken_at  timestamptz not null default clock_timestamp(),
  constraint log_owner_pkey primary key (consumer, log)
);
comment on table ${schema}.log_owner is
  'One row for each log (a partition of a Kafka topic) that a consumer reads in strict order. Lane transactions hold it "for share" under their epoch; a new owner raises the epoch, which waits for them and shuts out those that come later.';
comment on column ${schema}.log_owner.epoch is 'Raised by each new owner.';
`,
};
