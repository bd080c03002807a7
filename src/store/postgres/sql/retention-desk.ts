const recordSql = (schema: string): string => `
insert into ${schema}.retention_decision (kind, decided_by, reason, consumer, subject)
values ($1::text, $2::text, $3::text, $4::text, $5::text)
returning id::text as id`;

/** By primary key, backwards. */
const listSql = (schema: string): string => `
select id::text as id, kind, decided_at, decided_by, reason, consumer, subject
  from ${schema}.retention_decision order by id desc limit $1::int`;

/** One scan of the ledger. */
const countOlderSql = (schema: string): string => `
select count(*)::float8 as identities
  from ${schema}.ledger m
 where m.consumer = $1::text
   and case when $2::text = ''
            then m.producer not in (select r.producer from ${schema}.retention r where r.consumer = $1::text)
            else m.producer = $2::text end
   and m.processed_at < clock_timestamp() - $3::text::float8 * interval '1 millisecond'`;

/** All that is known of the identity is locked, by primary keys: no worker handles it and nobody decides meanwhile. */
const lockIdentitySql = (schema: string): string => `
with held as (
  select m.digest from ${schema}.message m where m.digest = $1::text::uuid for update
)
select h.digest from held h
union all
select c.digest from ${schema}.message_closed c where c.digest = $1::text::uuid`;

const lockPendingSql = (schema: string): string => `
select from ${schema}.pending where digest = $1::text::uuid for update`;

const lockEntriesSql = (schema: string): string => `
select q.id::text as id, q.status = 'open' as open
  from ${schema}.quarantine q where q.digest = $1::text::uuid order by q.id for update`;

/** Effects that the handler asked for: those without an id of their own begin with the message's digest. */
const ofMessage = `
       (left(o.effect_id, 33) = replace($1::text, '-', '') || '-'
        or exists (select from unnest($2::text[], $3::text[]) as e (destination, id)
                    where e.destination = o.destination and e.id = o.effect_id))`;

/** A scan of what waits. Ids in a bundle stand in one text, and follow from their messages. */
const countWaitingEffectsSql = (schema: string): string => `
select ((select count(*) from ${schema}.outbox o where ${ofMessage})
        + (select coalesce(sum(length(b.ids) - length(replace(b.ids, replace($1::text, '-', '') || '-', ''))), 0) / 33
             from ${schema}.outbox_bundle b))::int as effects`;

/** A pending message becomes an entry that is decided on, without its body: it will not be handled. */
const discardPendingSql = (schema: string): string => `
with gone as (
  delete from ${schema}.pending where digest = $1::text::uuid returning *
), key_goes_on as (
  update ${schema}.parked_key k set due_at = clock_timestamp()
    from gone where k.consumer = gone.consumer and k.message_key = gone.message_key and k.digest = gone.digest
     and k.due_at < 'infinity'
)
insert into ${schema}.quarantine
  (status, consumer, digest, tenant, producer, message_id, message_key, message_type, headers, payload, fingerprint,
   fingerprint_mode, code, error, attempts, first_failed_at, last_failed_at, handler_version, position, message_time,
   error_group, error_shape, payload_bytes, decided_at)
select 'discarded', consumer, digest, tenant, producer, message_id, message_key, message_type, '{}', null, fingerprint,
       fingerprint_mode, 'erased', 'erased', attempts, received_at, clock_timestamp(), '', position, message_time,
       'erased', 'erased', 0, clock_timestamp()
  from gone
returning id`;

const discardOpenSql = (schema: string): string => `
update ${schema}.quarantine set status = 'discarded', decided_at = clock_timestamp()
 where digest = $1::text::uuid and status = 'open'
returning id::text as id`;

const releaseKeysSql = (schema: string): string => `
select ${schema}.release_keys($1::text::bigint[])`;

/** By quarantine_digest. */
const eraseEntriesSql = (schema: string): string => `
update ${schema}.quarantine
   set payload = null, payload_bytes = 0, payload_key_id = null, headers = '{}', raw_identity = null, error = 'erased',
       error_shape = 'erased'
 where digest = $1::text::uuid and (payload is not null or headers <> '{}' or error <> 'erased')`;

/** By repair_digest, and the repairs of its entries under another identity by repair_pkey. */
const eraseRepairsSql = (schema: string): string => `
update ${schema}.repair set payload = null, payload_key_id = null
 where (digest = $1::text::uuid or entry_id in (select q.id from ${schema}.quarantine q where q.digest = $1::text::uuid))
   and payload is not null`;

/** By answer_pkey. */
const eraseAnswerSql = (schema: string): string => `
update ${schema}.answer set body = '', headers = '{}' where digest = $1::text::uuid and (body <> '' or headers <> '{}')`;

/** By attempt_digest. */
const eraseAttemptsSql = (schema: string): string => `
update ${schema}.attempt set error = 'erased' where digest = $1::text::uuid and error <> 'erased'`;

/** Scans: an operator's seldom errand. */
const eraseRefusalsSql = (schema: string): string => `
update ${schema}.outbox_refusal o
   set headers = null, payload = null, payload_key_id = null, repaired_headers = null, repaired_payload = null,
       repaired_key_id = null, payload_bytes = 0, error = 'erased', error_shape = 'erased'
 where ${ofMessage} and (payload is not null or repaired_payload is not null or headers is not null or error <> 'erased')`;

const eraseResultsSql = (schema: string): string => `
update ${schema}.outbox_attempt o set result = null, error = null
 where ${ofMessage} and (result is not null or error is not null)`;

export const retentionDeskSql = (schema: string) => ({
  record: recordSql(schema),
  list: listSql(schema),
  countOlder: countOlderSql(schema),
  lockIdentity: lockIdentitySql(schema),
  lockPending: lockPendingSql(schema),
  lockEntries: lockEntriesSql(schema),
  countWaitingEffects: countWaitingEffectsSql(schema),
  discardPending: discardPendingSql(schema),
  discardOpen: discardOpenSql(schema),
  releaseKeys: releaseKeysSql(schema),
  eraseEntries: eraseEntriesSql(schema),
  eraseRepairs: eraseRepairsSql(schema),
  eraseAnswer: eraseAnswerSql(schema),
  eraseAttempts: eraseAttemptsSql(schema),
  eraseRefusals: eraseRefusalsSql(schema),
  eraseResults: eraseResultsSql(schema),
});
