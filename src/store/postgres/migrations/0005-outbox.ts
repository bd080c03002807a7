import { outboxFunctions } from "./0005-outbox-functions.ts";
import type { Migration } from "./migration.ts";

/** Effects outside the database: asked for in a transaction, sent by relays. */
export const migration0005: Migration = {
  version: 5,
  name: "outbox",
  sql: (schema) => `
create sequence ${schema}.outbox_position as bigint;
comment on sequence ${schema}.outbox_position is
  'The order in which effects were asked for. Not the order of commits: nothing may read the outbox up to a position.';

create table ${schema}.outbox_id (
  digest       uuid not null,
  position     bigint not null,
  recorded_at  timestamptz not null default now(),
  fingerprint  bytea not null,
  constraint outbox_id_pkey primary key (digest)
);
create index outbox_id_recorded on ${schema}.outbox_id using brin (recorded_at);
comment on table ${schema}.outbox_id is
  'One row for each effect that was ever asked for, so that the same id is one effect. Waiting: it has a row in outbox. Else outbox_attempt tells what became of it.';
comment on column ${schema}.outbox_id.digest is
  'The first 16 bytes of SHA-256 over destination, tenant, producer and id, each with its length in front.';
comment on column ${schema}.outbox_id.fingerprint is 'SHA-256 of the payload; empty for an effect without one.';

create table ${schema}.outbox (
  position        bigint not null,
  lane            smallint not null,
  attempts        integer not null default 0,
  counted         integer not null default 0,
  asked_at        timestamptz not null default now(),
  due_at          timestamptz,
  expires_at      timestamptz,
  last_at         timestamptz,
  digest          uuid not null,
  destination     text collate "C" not null,
  state           text collate "C" not null default 'ready',
  tenant          text collate "C" not null,
  producer        text collate "C" not null,
  effect_id       text collate "C" not null,
  effect_key      text collate "C",
  effect_type     text collate "C",
  effect_time     text collate "C",
  headers         text not null,
  payload         bytea,
  payload_key_id  text collate "C",
  last_code       text collate "C",
  last_error      text,
  constraint outbox_pkey primary key (position),
  constraint outbox_state check (state in ('ready', 'scheduled', 'behind', 'quarantined', 'aside')),
  constraint outbox_due check ((state = 'scheduled') = (due_at is not null))
);
create index outbox_ready on ${schema}.outbox (destination, lane, position) where state = 'ready';
create index outbox_scheduled on ${schema}.outbox (destination, due_at) where state = 'scheduled';
create index outbox_lane_scheduled on ${schema}.outbox (destination, lane, due_at) where state = 'scheduled';
create index outbox_waiting on ${schema}.outbox (destination, effect_key, position)
  where state in ('scheduled', 'behind', 'quarantined');
create index outbox_quarantined on ${schema}.outbox (destination, last_code, position)
  where state in ('quarantined', 'aside');
comment on table ${schema}.outbox is
  'Effects that wait to be sent. A row is written once by the transaction that asks for the effect, not touched while it waits, and deleted when its destination has confirmed it.';
comment on column ${schema}.outbox.asked_at is 'Start of the transaction that asked for it.';
comment on column ${schema}.outbox.state is
  'ready: may be sent. scheduled: may be sent from due_at on. behind: an earlier effect of its key is not settled. quarantined: refused for good, waits for a decision, and later effects of its key with it. aside: likewise, and its key goes on.';
comment on column ${schema}.outbox.counted is 'Failed attempts that may be its own fault: so many are allowed.';

create table ${schema}.outbox_lane (
  destination   text collate "C" not null,
  lane          smallint not null,
  lease_token   bigint not null default 0,
  leased_until  timestamptz,
  relay_id      uuid,
  taken_at      timestamptz,
  constraint outbox_lane_pkey primary key (destination, lane)
);
create sequence ${schema}.outbox_lease as bigint;
comment on table ${schema}.outbox_lane is
  'The 64 lanes of each destination by which effects are handed out: all of a key are in one lane, and one relay holds a lane. Whoever changes the state of a lane''s effects holds its row.';
comment on column ${schema}.outbox_lane.lease_token is
  'Raised with each taking. Whoever holds an older one may write nothing.';

create table ${schema}.outbox_attempt (
  at           timestamptz not null default clock_timestamp(),
  position     bigint not null,
  digest       uuid not null,
  attempt      integer not null,
  status       integer,
  took_ms      integer,
  relay_id     uuid,
  destination  text collate "C" not null,
  tenant       text collate "C" not null,
  producer     text collate "C" not null,
  effect_id    text collate "C" not null,
  outcome      text collate "C" not null,
  code         text collate "C",
  error        text,
  result       text,
  constraint outbox_attempt_outcome
    check (outcome in ('sent', 'failed', 'ambiguous', 'rejected', 'expired', 'discarded'))
);
create index outbox_attempt_digest on ${schema}.outbox_attempt (digest);
create index outbox_attempt_at on ${schema}.outbox_attempt using brin (at);
comment on table ${schema}.outbox_attempt is
  'What became of each attempt to send an effect, and what its destination answered. Written with the change it tells of.';
comment on column ${schema}.outbox_attempt.outcome is
  'sent: confirmed. failed: certainly not taken. ambiguous: nobody knows; it is sent again under the same id. rejected: refused for good. expired: its time was over, it was not sent. discarded: somebody decided so.';
comment on column ${schema}.outbox_attempt.result is 'What the destination answered, as text, cut to 4 KiB.';
${outboxFunctions(schema)}`,
};
