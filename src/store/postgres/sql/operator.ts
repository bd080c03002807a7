const pendingColumns = `
       p.consumer, p.tenant, p.producer, p.message_id, p.message_key, p.message_type, p.state, p.position::text as place,
       p.received_at, p.due_at, p.attempts, p.deferrals, p.last_code, p.last_error,
       coalesce(octet_length(p.payload), 0) as stored_bytes, p.payload_key_id`;

/**
 * The filter, from parameter 1 to 8. What is not given folds away when the statement is planned with its values; a key
 * goes by pending_key, the rest by a scan of pending.
 */
const pendingFits = `
       ($1::text is null or p.consumer = $1::text)
   and ($2::text is null or p.state = $2::text)
   and ($3::text is null or p.tenant = $3::text)
   and ($4::text is null or p.producer = $4::text)
   and ($5::text is null or p.message_id = $5::text)
   and ($6::text is null or p.message_key = $6::text)
   and ($7::text is null or p.message_type = $7::text)
   and ($8::text is null or p.last_code = $8::text)`;

/** In the order of arrival; pages by position. */
const listPendingSql = (schema: string): string => `
select ${pendingColumns}
  from ${schema}.pending p
 where ${pendingFits}
   and ($9::text is null or p.position > $9::text::bigint)
 order by p.position
 limit $10::int`;

/** As the list, without its rows. */
const countPendingSql = (schema: string): string => `
select count(*)::int as messages from ${schema}.pending p where ${pendingFits}`;

/** By primary key. */
const showPendingSql = (schema: string): string => `
select ${pendingColumns}, p.message_time, p.headers, encode(p.payload, 'hex') as payload_hex,
       encode(p.fingerprint, 'hex') as fingerprint, p.fingerprint_mode
  from ${schema}.pending p
 where p.digest = $1::text::uuid`;

/**
 * At most 1,000 scheduled messages become due, and their keys, so that what waits behind them goes on with them. Never
 * waits: whose row is locked is in a worker's hands. By primary key
 * where a digest is given, else as the list.
 */
const hurryPendingSql = (schema: string): string => `
with waiting as (
  select p.digest, p.consumer, p.message_key from ${schema}.pending p
   where ${pendingFits}
     and ($9::text is null or p.digest = $9::text::uuid)
     and p.state = 'scheduled' and p.due_at > clock_timestamp()
   limit 1000
     for update skip locked
), keys as (
  update ${schema}.parked_key k set due_at = clock_timestamp()
    from waiting w
   where k.consumer = w.consumer and k.message_key = w.message_key and k.due_at < 'infinity'
)
update ${schema}.pending p set due_at = clock_timestamp() from waiting where p.digest = waiting.digest`;

/** A scan of two tables: an id without its producer and consumer is no key. */
const findIdentitiesSql = (schema: string): string => `
select i.consumer, i.tenant, i.producer, i.message_id
  from (select m.consumer, m.tenant, m.producer, m.message_id from ${schema}.ledger m where m.message_id = $1::text
        union
        select a.consumer, a.tenant, a.producer, a.message_id from ${schema}.attempt a where a.message_id = $1::text) i
 where ($2::text is null or i.consumer = $2::text)
   and ($3::text is null or i.tenant = $3::text)
   and ($4::text is null or i.producer = $4::text)
 order by 1, 2, 3
 limit 50`;

/** By primary key; always one row. */
const ledgerOfSql = (schema: string): string => `
select now() as at, m.digest is not null as taken, m.processed_at, m.handler_version,
       encode(m.fingerprint, 'hex') as fingerprint, m.fingerprint_mode
  from (select) one
  left join ${schema}.ledger m on m.digest = $1::text::uuid`;

/** By attempt_digest: the last 100, and how many there are. */
const attemptsOfSql = (schema: string): string => `
select a.failed_at, a.code, a.error, a.handler_version, count(*) over ()::int as attempts
  from ${schema}.attempt a
 where a.digest = $1::text::uuid
 order by a.id desc
 limit 100`;

/** By primary keys, the messages before it by pending_key, the entry in its way by quarantine_blocking. */
const waitOfSql = (schema: string): string => `
select ${pendingColumns}, p.lane, l.worker_id::text as worker_id, l.leased_until,
       l.leased_until < clock_timestamp() as lease_expired,
       k.message_key as parked_key, k.parked_at, nullif(k.due_at, 'infinity') as parked_due_at,
       h.tenant as head_tenant, h.producer as head_producer, h.message_id as head_id, e.id::text as entry_id,
       (select count(*)::int from (select from ${schema}.pending b
                                    where b.consumer = p.consumer and b.message_key = p.message_key
                                      and b.position < p.position limit 1000) b) as before
  from ${schema}.pending p
  left join ${schema}.pending_lane l on l.consumer = p.consumer and l.lane = p.lane and l.leased_until is not null
  left join ${schema}.parked_key k on k.consumer = p.consumer and k.message_key = p.message_key
  left join ${schema}.ledger h on h.digest = k.digest
  left join lateral (select q.id from ${schema}.quarantine q
                      where q.consumer = k.consumer and q.message_key = k.message_key and q.status = 'open' and q.blocking
                        and q.digest = k.digest
                      order by q.position limit 1) e on true
 where p.digest = $1::text::uuid`;

/** By primary keys. */
const startedOfSql = (schema: string): string => `
select s.worker_id::text as worker_id, s.started_at,
       coalesce(w.closed_at is null and w.lease_until > clock_timestamp(), false) as running
  from ${schema}.started s
  left join ${schema}.worker w on w.id = s.worker_id
 where s.digest = $1::text::uuid
 order by s.started_at`;

/** What operators ask of messages that wait, and of any one message. */
export const operatorSql = (schema: string) => ({
  listPending: listPendingSql(schema),
  countPending: countPendingSql(schema),
  showPending: showPendingSql(schema),
  hurryPending: hurryPendingSql(schema),
  findIdentities: findIdentitiesSql(schema),
  ledgerOf: ledgerOfSql(schema),
  attemptsOf: attemptsOfSql(schema),
  waitOf: waitOfSql(schema),
  startedOf: startedOfSql(schema),
});
