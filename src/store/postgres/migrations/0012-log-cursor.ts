import type { Migration } from "./migration.ts";

/** How far logs are applied whose records are told apart by their place. */
export const migration0012: Migration = {
  version: 12,
  name: "log-cursor",
  // Room in the page for the row's next versions: each transaction writes one, and no index has these columns.
  sql: (schema) => `
alter table ${schema}.log_owner
  add column cluster      text collate "C",
  add column incarnation  text collate "C",
  add column applied      bigint,
  add column ends_at      bigint;
alter table ${schema}.log_owner set (fillfactor = 50);
comment on table ${schema}.log_owner is
  'One row for each log (a partition of a Kafka topic) that a consumer reads in strict order or by a cursor. Lane transactions hold it under their epoch; a new owner sets its own, which waits for them.';
comment on column ${schema}.log_owner.cluster is 'With a cursor: where the log lives, if that is known.';
comment on column ${schema}.log_owner.incarnation is
  'With a cursor: which log of this name it is (a topic''s id), and what was agreed to since. Null: it follows no cursor.';
comment on column ${schema}.log_owner.applied is
  'With a cursor: every record up to this offset is applied, pending or in quarantine. Moved in the transaction of the effect.';
comment on column ${schema}.log_owner.ends_at is
  'The log was found to end here, before what is applied. Nothing of it is applied until somebody agrees.';
`,
};
