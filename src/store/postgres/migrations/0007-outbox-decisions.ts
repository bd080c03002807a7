import type { Migration } from "./migration.ts";

/** Refused effects with the decisions on them, and what relays tell of themselves. */
export const migration0007: Migration = {
  version: 7,
  name: "outbox-decisions",
  sql: (schema) => `
create table ${schema}.outbox_decision (
  id           bigint generated always as identity,
  kind         text collate "C" not null,
  decided_at   timestamptz not null default clock_timestamp(),
  decided_by   text not null,
  reason       text not null,
  filter       text not null,
  matched      integer not null,
  decided      integer not null default 0,
  skipped      integer not null default 0,
  finished_at  timestamptz,
  constraint outbox_decision_pkey primary key (id),
  constraint outbox_decision_kind check (kind in ('retry', 'repair', 'discard'))
);
create index outbox_decision_unfinished on ${schema}.outbox_decision (id) where finished_at is null;
comment on table ${schema}.outbox_decision is
  'What a person decided on refused effects. Stays when the effects are forgotten.';
comment on column ${schema}.outbox_decision.filter is
  'JSON: which effects were meant, where they were chosen by a filter; else the entry''s id.';
comment on column ${schema}.outbox_decision.skipped is
  'Effects that somebody else had decided on by then; they stayed as they were.';
comment on column ${schema}.outbox_decision.finished_at is 'Null: batches are left, see outbox_decision_batch.';

create table ${schema}.outbox_decision_batch (
  decision_id  bigint not null,
  batch        integer not null,
  entry_ids    bigint[] not null,
  constraint outbox_decision_batch_pkey primary key (decision_id, batch)
);
comment on table ${schema}.outbox_decision_batch is
  'Refused effects that a decision on many has yet to reach. Each batch goes in the transaction that applies it.';

create table ${schema}.outbox_refusal (
  id                bigint generated always as identity,
  position          bigint not null,
  attempts          integer not null,
  payload_bytes     integer not null,
  asked_at          timestamptz not null,
  refused_at        timestamptz not null,
  digest            uuid not null,
  again_of          bigint,
  decision_id       bigint,
  decided_at        timestamptz,
  holds_key         boolean not null,
  status            text collate "C" not null default 'open',
  destination       text collate "C" not null,
  tenant            text collate "C" not null,
  producer          text collate "C" not null,
  effect_id         text collate "C" not null,
  effect_key        text collate "C",
  effect_type       text collate "C",
  code              text collate "C" not null,
  error_group       text collate "C" not null,
  error             text not null,
  error_shape       text not null,
  headers           text,
  payload           bytea,
  payload_key_id    text collate "C",
  repaired_headers  text,
  repaired_payload  bytea,
  repaired_key_id   text collate "C",
  constraint outbox_refusal_pkey primary key (id),
  constraint outbox_refusal_status check (status in ('open', 'retried', 'repaired', 'discarded')),
  constraint outbox_refusal_decided check ((status = 'open') = (decided_at is null))
);
create unique index outbox_refusal_open on ${schema}.outbox_refusal (position) where status = 'open';
create index outbox_refusal_list on ${schema}.outbox_refusal (id) where status = 'open';
create index outbox_refusal_group on ${schema}.outbox_refusal (destination, code, error_group) where status = 'open';
create index outbox_refusal_digest on ${schema}.outbox_refusal (digest, id);
create index outbox_refusal_bodies on ${schema}.outbox_refusal (decided_at)
  where headers is not null or repaired_headers is not null;
comment on table ${schema}.outbox_refusal is
  'One row for each time that an effect was set aside for a person, written with the change of its state. While it is open the effect lies in outbox, with its body.';
comment on column ${schema}.outbox_refusal.status is
  'open: waits for a decision. retried: given back to be sent, as it is. repaired: likewise, with another body. discarded: will not be sent.';
comment on column ${schema}.outbox_refusal.holds_key is 'Whether later effects of its key wait for the decision.';
comment on column ${schema}.outbox_refusal.again_of is
  'The refusal before of the same effect, which was retried or repaired.';
comment on column ${schema}.outbox_refusal.error_group is
  'The same for refusals of one code whose errors differ only in numbers, ids and quoted texts.';
comment on column ${schema}.outbox_refusal.payload is
  'Of an effect that was discarded, or as it was before a repair; with its headers, sealed or not. Null while it lies in outbox.';
comment on column ${schema}.outbox_refusal.repaired_payload is 'What a repair gave back to be sent.';
insert into ${schema}.outbox_refusal
  (position, attempts, payload_bytes, asked_at, refused_at, digest, holds_key, destination, tenant, producer, effect_id,
   effect_key, effect_type, code, error_group, error, error_shape)
select o.position, o.attempts, coalesce(octet_length(o.payload), 0), o.asked_at, coalesce(o.last_at, o.asked_at), o.digest,
       o.state = 'quarantined', o.destination, o.tenant, o.producer, o.effect_id, o.effect_key, o.effect_type,
       coalesce(o.last_code, 'destination-refused'),
       substr(encode(sha256(convert_to(coalesce(o.last_code, '') || chr(10) || left(coalesce(o.last_error, ''), 300), 'utf8')), 'hex'), 1, 16),
       coalesce(o.last_error, ''), left(coalesce(o.last_error, ''), 300)
  from ${schema}.outbox o
 where o.state in ('quarantined', 'aside')
 order by o.position;

create table ${schema}.outbox_relay (
  destination   text collate "C" not null,
  relay_id      uuid not null,
  started_at    timestamptz not null default clock_timestamp(),
  seen_at       timestamptz not null,
  closed_at     timestamptz,
  paused_until  timestamptz,
  last_sent_at  timestamptz,
  sent          bigint not null,
  failed        bigint not null,
  in_hand       integer not null,
  last_error    text,
  constraint outbox_relay_pkey primary key (destination, relay_id)
);
comment on table ${schema}.outbox_relay is
  'What each relay told last of each of its destinations, every few seconds. For people: nothing is decided by it.';
comment on column ${schema}.outbox_relay.seen_at is 'When it told this.';
comment on column ${schema}.outbox_relay.paused_until is 'Null unless the destination does not answer and is given a pause.';

create table ${schema}.outbox_cleanup (
  only_one      boolean not null default true,
  token         bigint not null default 0,
  worker_id     uuid,
  leased_until  timestamptz,
  finished_at   timestamptz,
  constraint outbox_cleanup_pkey primary key (only_one),
  constraint outbox_cleanup_only_one check (only_one)
);
insert into ${schema}.outbox_cleanup default values;
comment on table ${schema}.outbox_cleanup is
  'One row: which worker forgets old effects, and until when. Each batch is written under the row''s lock.';
comment on column ${schema}.outbox_cleanup.token is 'Raised with each taking. Whoever holds an older one forgets nothing.';
`,
};
