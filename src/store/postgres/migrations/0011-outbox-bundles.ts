import { bundleFunctions } from "./0011-bundle-functions.ts";
import { outboxSendFunction } from "./0011-outbox-send-function.ts";
import { outboxTakeFunctions } from "./0011-outbox-take-functions.ts";
import type { Migration } from "./migration.ts";

/** Effects that handlers ask for by the hundred, stored as one row; and marks from which lanes of the outbox are looked at. */
export const migration0011: Migration = {
  version: 11,
  name: "outbox-bundles",
  sql: (schema) => `
alter sequence ${schema}.outbox_position increment by 1024;

create table ${schema}.outbox_bundle (
  position     bigint not null,
  asked_at     timestamptz not null default now(),
  size         integer not null,
  destination  text collate "C" not null,
  tenants      text not null,
  producers    text not null,
  ids          text not null,
  keys         text not null,
  types        text not null,
  times        text not null,
  headers      text not null,
  payloads     text not null,
  constraint outbox_bundle_pkey primary key (position),
  constraint outbox_bundle_size check (size between 1 and 1024)
);
alter table ${schema}.outbox_bundle
  alter column ids set storage external, alter column keys set storage external,
  alter column headers set storage external, alter column payloads set storage external;
create index outbox_bundle_destination on ${schema}.outbox_bundle (destination, position);
comment on table ${schema}.outbox_bundle is
  'Effects of one transaction and destination, as it asked for them: one row until a relay takes it and makes a row of outbox of each. Their ids follow from messages that were claimed by this very transaction.';
comment on column ${schema}.outbox_bundle.position is
  'The place of the first one in the order of outbox.position; the others have the places behind it, of which the sequence leaves 1,024.';
comment on column ${schema}.outbox_bundle.ids is
  'Like all columns that follow: an array in text form, read when the bundle is unpacked. Payloads are base64.';

alter table ${schema}.outbox_lane
  add column ready_from bigint not null default 0,
  add column due_from timestamptz not null default '-infinity',
  add column next_ready bigint not null default 0,
  add column next_due timestamptz not null default '-infinity',
  add column next_at timestamptz,
  add column next_xmax xid8,
  add column whole_at timestamptz;
comment on column ${schema}.outbox_lane.ready_from is
  'Nothing ready lies before this place. Whoever looks from here on does not read again what was sent before, which stays in the indexes as long as the oldest snapshot is open. Whoever makes an effect ready at an earlier place sets it back.';
comment on column ${schema}.outbox_lane.due_from is 'The same for what is scheduled.';
comment on column ${schema}.outbox_lane.next_ready is
  'With next_due: the next marks, noted at next_at. They become the marks when every transaction of that moment, below next_xmax, has ended: an effect has its place only after its transaction has its number.';
comment on column ${schema}.outbox_lane.whole_at is
  'When the lane was looked through from its beginning. Once a minute, in case somebody did not set a mark back.';
${outboxSendFunction(schema)}${bundleFunctions(schema)}${outboxTakeFunctions(schema)}`,
};
