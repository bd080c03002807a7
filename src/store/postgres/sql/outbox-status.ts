import { bundledColumns, bundledDigest, bundledEffects } from "./outbox-bundled.ts";

/** What the outbox tells of itself, with the schema's name filled in once. */
export type OutboxStatusSql = ReturnType<typeof outboxStatusSql>;

export const outboxStatusSql = (schema: string) => ({
  listWaitingEffects: listWaitingSql(schema),
  outboxStatus: statusSql(schema),
  askedEffects: askedEffectsSql(schema),
  waitingByDigest: waitingByDigestSql(schema),
  attemptsOf: attemptsOfSql(schema),
  reportRelay: reportRelaySql(schema),
  forgetRelays: forgetRelaysSql(schema),
  abandonedLanes: abandonedLanesSql(schema),
});

const waitingColumns = `
       o.position::text as position, o.destination, o.tenant, o.producer, o.effect_id, o.effect_key, o.effect_type,
       o.state, o.asked_at, (extract(epoch from clock_timestamp() - o.asked_at) * 1000)::float8 as waited_ms, o.due_at,
       o.expires_at, o.attempts, o.last_code, o.last_error, coalesce(octet_length(o.payload), 0) as payload_bytes,
       o.payload_key_id is not null as sealed`;

/**
 * By primary keys, in order; the length of a body is known without reading it. Of bundles those that the list reaches are
 * opened; what was asked for before is none that waits.
 */
const listWaitingSql = (schema: string): string => `
select w.*
  from ((select o.position as place, ${waitingColumns}
           from ${schema}.outbox o
          where ($1::text is null or o.destination = $1::text)
            and ($2::text is null or o.state = $2::text)
            and ($3::text is null or o.tenant = $3::text)
            and ($4::text is null or o.producer = $4::text)
            and ($5::text is null or o.effect_id = $5::text)
            and ($6::text is null or o.effect_key = $6::text)
            and ($7::text is null or o.position > $7::text::bigint)
          order by o.position
          limit $8::int)
        union all
        (select e.*
           from ${schema}.outbox_bundle b
          cross join lateral (
                select b.position + e.n - 1 as place, ${bundledColumns}
                  from (select b.*) b ${bundledEffects}
                 where ($3::text is null or e.tenant = $3::text)
                   and ($4::text is null or e.producer = $4::text)
                   and ($5::text is null or e.id = $5::text)
                   and ($6::text is null or e.key = $6::text)
                   and ($7::text is null or b.position + e.n - 1 > $7::text::bigint)
                   and not exists (select from ${schema}.outbox_id f where f.digest = ${bundledDigest})
                 order by e.n
                 limit $8::int) e
          where ($1::text is null or b.destination = $1::text)
            and ($2::text is null or $2::text = 'ready')
            and ($7::text is null or b.position > $7::text::bigint - 1024)
          order by b.position, e.place
          limit $8::int)) w
 order by w.place
 limit $8::int`;

/**
 * Counts by the index of each state: outbox_ready alone, without the table where it is vacuumed; outbox_scheduled,
 * outbox_waiting and outbox_refusal_group; bundles, a row for hundreds, as they are. The oldest ready effect by its position, one probe a destination.
 */
const statusSql = (schema: string): string => `
with ready as (
  select o.destination, count(*) as n, min(o.position) as first
    from ${schema}.outbox o where o.state = 'ready' group by o.destination
), bundled as (
  select b.destination, sum(b.size) as n, min(b.asked_at) as oldest from ${schema}.outbox_bundle b group by b.destination
), others as (
  select o.destination, count(*) filter (where o.state = 'scheduled') as scheduled,
         count(*) filter (where o.state = 'scheduled' and o.due_at <= clock_timestamp()) as due,
         count(*) filter (where o.state = 'behind') as behind, min(o.asked_at) as oldest
    from ${schema}.outbox o where o.state in ('scheduled', 'behind') group by o.destination
), refused as (
  select q.destination, count(*) as n, min(q.refused_at) as oldest
    from ${schema}.outbox_refusal q where q.status = 'open' group by q.destination
), lanes as (
  select l.destination, count(*) filter (where l.leased_until >= clock_timestamp()) as held
    from ${schema}.outbox_lane l group by l.destination
), relays as (
  select r.destination, max(r.last_sent_at) as last_sent_at,
         count(*) filter (where r.alive) as alive, sum(r.in_hand) filter (where r.alive) as in_hand,
         count(*) filter (where r.alive and r.paused_until > clock_timestamp()) as paused,
         min(r.paused_until) filter (where r.alive and r.paused_until > clock_timestamp()) as paused_until,
         (array_agg(r.last_error order by r.seen_at desc) filter (where r.alive and r.last_error is not null))[1]
           as last_error
    from (select p.*, p.closed_at is null and p.seen_at > clock_timestamp() - interval '30 seconds' as alive
            from ${schema}.outbox_relay p) r
   group by r.destination
), names as (
  select destination from ready union select destination from bundled union select destination from others union select destination from refused
  union select destination from lanes
)
select n.destination, (coalesce(ready.n, 0) + coalesce(bundled.n, 0) + coalesce(o.scheduled, 0) + coalesce(o.behind, 0))::float8 as waiting,
       (coalesce(ready.n, 0) + coalesce(bundled.n, 0) + coalesce(o.due, 0))::float8 as due,
       (coalesce(o.scheduled, 0) - coalesce(o.due, 0))::float8 as scheduled, coalesce(o.behind, 0)::float8 as behind,
       coalesce(lanes.held, 0)::int as lanes_held, coalesce(relays.in_hand, 0)::int as in_hand,
       coalesce(refused.n, 0)::float8 as refused,
       (extract(epoch from clock_timestamp() - least(o.oldest, first.asked_at, bundled.oldest)) * 1000)::float8 as oldest_ms,
       (extract(epoch from clock_timestamp() - refused.oldest) * 1000)::float8 as oldest_refused_ms,
       coalesce(relays.alive, 0)::int as relays, coalesce(relays.paused, 0)::int as paused,
       (extract(epoch from relays.paused_until - clock_timestamp()) * 1000)::float8 as paused_for_ms,
       (extract(epoch from clock_timestamp() - relays.last_sent_at) * 1000)::float8 as last_sent_ms,
       relays.last_error
  from names n
  left join ready on ready.destination = n.destination
  left join bundled on bundled.destination = n.destination
  left join ${schema}.outbox first on first.position = ready.first
  left join others o on o.destination = n.destination
  left join refused on refused.destination = n.destination
  left join lanes on lanes.destination = n.destination
  left join relays on relays.destination = n.destination
 order by n.destination`;

/**
 * By primary key. What is not found, and has an id that follows from a message, may lie in a bundle of its destination:
 * those are looked through in the same snapshot, and the one that holds it is opened.
 */
const askedEffectsSql = (schema: string): string => `
select replace(d.digest::text, '-', '') as digest, coalesce(f.recorded_at, w.asked_at) as recorded_at, w.*
  from unnest($1::text::uuid[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::text[])
    as d (digest, destination, tenant, producer, id)
  left join ${schema}.outbox_id f on f.digest = d.digest
  left join lateral (
       select ${bundledColumns}
         from ${schema}.outbox_bundle b ${bundledEffects}
        where f.digest is null and d.id ~ '^[0-9a-f]{32}-[0-9]+$'
          and b.destination = d.destination and d.id = any (b.ids::text[])
          and e.id = d.id and e.tenant = d.tenant and e.producer = d.producer
        limit 1) w on true
 where f.digest is not null or w.position is not null`;

/** By primary keys, from the effect's name to its place. */
const waitingByDigestSql = (schema: string): string => `
select ${waitingColumns}, replace(o.digest::text, '-', '') as digest
  from ${schema}.outbox_id f
  join ${schema}.outbox o on o.position = f.position
 where f.digest = any ($1::text::uuid[])`;

/** By outbox_attempt_digest: the last 100 of each. */
const attemptsOfSql = (schema: string): string => `
select replace(d.digest::text, '-', '') as digest, a.at, a.attempt, a.outcome, a.code, a.error, a.status, a.result, a.took_ms
  from unnest($1::text::uuid[]) as d (digest)
 cross join lateral (select * from ${schema}.outbox_attempt a
                      where a.digest = d.digest order by a.at desc, a.attempt desc limit 100) a
 order by a.at, a.attempt`;

/** One row a destination of a relay, by primary key. Ages become times of this clock. */
const reportRelaySql = (schema: string): string => `
insert into ${schema}.outbox_relay as r
  (destination, relay_id, seen_at, closed_at, paused_until, last_sent_at, sent, failed, in_hand, last_error)
select v.destination, $1::text::uuid, clock_timestamp(), case when $9::boolean then clock_timestamp() end,
       clock_timestamp() + v.paused_for * interval '1 millisecond',
       clock_timestamp() - v.last_sent * interval '1 millisecond', v.sent, v.failed, v.in_hand, v.last_error
  from unnest($2::text::text[], $3::text::bigint[], $4::text::bigint[], $5::text::bigint[], $6::text::bigint[],
              $7::text::integer[], $8::text::text[])
    as v (destination, paused_for, last_sent, sent, failed, in_hand, last_error)
on conflict (destination, relay_id) do update
   set seen_at = excluded.seen_at, closed_at = excluded.closed_at, paused_until = excluded.paused_until,
       last_sent_at = excluded.last_sent_at, sent = excluded.sent, failed = excluded.failed,
       in_hand = excluded.in_hand, last_error = excluded.last_error`;

/** A handful of rows stay: those of a day, and of each destination the one that has sent last. */
const forgetRelaysSql = (schema: string): string => `
delete from ${schema}.outbox_relay r
 where r.seen_at < clock_timestamp() - interval '1 day'
   and (r.last_sent_at is null
        or exists (select from ${schema}.outbox_relay o
                    where o.destination = r.destination and o.last_sent_at > r.last_sent_at))`;

/** Lanes that a relay did not give back before its lease was over: 64 rows by primary key. */
const abandonedLanesSql = (schema: string): string => `
select l.lane
  from ${schema}.outbox_lane l
 where l.destination = $1::text and l.relay_id is not null and l.leased_until < clock_timestamp()`;
