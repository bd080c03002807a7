import { claimFunctions } from "./0003-claim-functions.ts";
import { laneFunctions } from "./0003-lane-functions.ts";
import { requeueFunctions } from "./0003-requeue-functions.ts";
import { takeFunctions } from "./0003-take-functions.ts";
import type { Migration } from "./migration.ts";

/** Messages that are stored and not yet handled, the lanes they are handed out by, and keys that wait. */
export const migration0003: Migration = {
  version: 3,
  name: "pending",
  sql: (schema) => `
create sequence ${schema}.arrival as bigint;
comment on sequence ${schema}.arrival is
  'The order in which messages came to pending or quarantine. A message keeps its place when it goes from one to the other.';

create table ${schema}.pending (
  digest            uuid not null,
  position          bigint not null default nextval('${schema}.arrival'),
  lane              smallint not null,
  state             text collate "C" not null default 'ready',
  due_at            timestamptz,
  attempts          integer not null default 0,
  deferrals         integer not null default 0,
  received_at       timestamptz not null default clock_timestamp(),
  consumer          text collate "C" not null,
  tenant            text collate "C" not null,
  producer          text collate "C" not null,
  message_id        text collate "C" not null,
  message_key       text collate "C",
  message_type      text collate "C",
  message_time      text collate "C",
  headers           text not null,
  payload           bytea,
  payload_key_id    text collate "C",
  fingerprint       bytea not null,
  fingerprint_mode  text collate "C" not null,
  last_code         text collate "C",
  last_error        text,
  constraint pending_pkey primary key (digest),
  constraint pending_state check (state in ('ready', 'scheduled', 'behind')),
  constraint pending_due check ((state = 'scheduled') = (due_at is not null))
);
create index pending_ready on ${schema}.pending (consumer, lane, position) where state = 'ready';
create index pending_scheduled on ${schema}.pending (consumer, lane, due_at) where state = 'scheduled';
create index pending_key on ${schema}.pending (consumer, message_key, position) where message_key is not null;
create index pending_waiting on ${schema}.pending (consumer, message_key, position)
  where state <> 'ready' and message_key is not null;
comment on table ${schema}.pending is
  'Messages whose body is stored and whose effect is not applied. A row is written once, not touched while it waits, and deleted in the transaction that applies it.';
comment on column ${schema}.pending.state is
  'ready: may be handled now. scheduled: may be handled from due_at on. behind: waits until the messages of its key before it are settled.';
comment on column ${schema}.pending.attempts is 'Failed attempts that count.';
comment on column ${schema}.pending.deferrals is
  'How often in a row it was put off for something that is not its fault; only the wait grows with it.';
comment on column ${schema}.pending.message_time is 'When the producer says it happened, ISO 8601.';
comment on column ${schema}.pending.payload_key_id is
  'The key that payload and headers are sealed with; null: they are as they came.';

create table ${schema}.pending_lane (
  consumer      text collate "C" not null,
  lane          smallint not null,
  lease_token   bigint not null default 0,
  leased_until  timestamptz,
  worker_id     uuid,
  taken_at      timestamptz,
  taken_to      bigint,
  suspect_to    bigint,
  ready_from    bigint not null default 0,
  due_from      timestamptz not null default '-infinity',
  next_ready    bigint not null default 0,
  next_due      timestamptz not null default '-infinity',
  next_at       timestamptz,
  next_xmax     xid8,
  whole_at      timestamptz,
  constraint pending_lane_pkey primary key (consumer, lane)
);
create sequence ${schema}.lease as bigint;
comment on table ${schema}.pending_lane is
  'The 64 lanes of each consumer by which pending messages are handed out: all of a key are in one lane, and one worker holds a lane.';
comment on column ${schema}.pending_lane.lease_token is
  'Raised with each taking. Whoever holds an older one may write nothing.';
comment on column ${schema}.pending_lane.leased_until is
  'Null: free. In the past: its worker died, or was stopped for longer than its lease.';
comment on column ${schema}.pending_lane.suspect_to is
  'Positions up to here were in the hands of a worker that did not give the lane back: one of them may have ended it.';
comment on column ${schema}.pending_lane.ready_from is
  'Nothing ready lies before this place but what took longer than two seconds to commit. Whoever looks from here on does not read again what was handled before, which stays in the indexes as long as the oldest snapshot is open.';
comment on column ${schema}.pending_lane.due_from is 'The same for what is scheduled, and for parked keys.';
comment on column ${schema}.pending_lane.next_ready is 'With next_due: the next marks, noted at next_at. They become the marks when every transaction of that moment, below next_xmax, has ended, or after two seconds.';
comment on column ${schema}.pending_lane.whole_at is
  'When the lane was looked through from its beginning, which finds what committed late. Once a minute.';

create table ${schema}.parked_key (
  consumer     text collate "C" not null,
  message_key  text collate "C" not null,
  lane         smallint not null,
  due_at       timestamptz not null,
  digest       uuid not null,
  parked_at    timestamptz not null default clock_timestamp(),
  constraint parked_key_pkey primary key (consumer, message_key)
);
create index parked_key_due on ${schema}.parked_key (consumer, lane, due_at) where due_at < 'infinity';
comment on table ${schema}.parked_key is
  'Keys with a message that failed and is not settled: later messages of the key are stored behind it. There as long as one of them is in pending, or the key waits for a decision.';
comment on column ${schema}.parked_key.due_at is
  'When to look at the key again. Infinity: when the message in quarantine has its decision.';
comment on column ${schema}.parked_key.digest is 'The message that the others wait for.';

alter table ${schema}.quarantine
  add column position bigint not null default nextval('${schema}.arrival'),
  add column message_time text collate "C",
  add column payload_key_id text collate "C",
  add column blocking boolean not null default false;
create index quarantine_blocking on ${schema}.quarantine (consumer, message_key, position)
  where status = 'open' and blocking;
comment on column ${schema}.quarantine.position is 'Its place in the order of arrival, which a retry gives it back.';
comment on column ${schema}.quarantine.blocking is 'Whether later messages of its key wait for the decision.';
comment on column ${schema}.quarantine.payload_key_id is
  'The key that payload and headers are sealed with; null: they are as they came.';
${claimFunctions(schema)}${laneFunctions(schema)}${takeFunctions(schema)}${requeueFunctions(schema)}`,
};
