import type { Migration } from "./migration.ts";

/** The answers that were given to requests, for their duplicates. */
export const migration0002: Migration = {
  version: 2,
  name: "answer",
  sql: (schema) => `
create table ${schema}.answer (
  digest       uuid not null,
  consumer     text collate "C" not null,
  request      text not null,
  status       smallint not null,
  headers      text not null,
  body         bytea not null,
  answered_at  timestamptz not null default clock_timestamp(),
  constraint answer_pkey primary key (digest)
);
comment on table ${schema}.answer is
  'What was answered to a request that a message came by. Written with the effect, in one transaction; a duplicate gets it again. Goes when its message row goes.';
comment on column ${schema}.answer.request is 'Method and target of the request, where a key belongs to them; else empty.';
comment on column ${schema}.answer.headers is 'A JSON object of the headers that are given again.';
`,
};
