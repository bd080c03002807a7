/** Every statement of the outbox, with the schema's name filled in once. */
export type OutboxSql = ReturnType<typeof outboxSql>;

export const outboxSql = (schema: string) => ({
  sendEffects: sendEffectsSql(schema),
  bundleEffects: bundleEffectsSql(schema),
  openEffectLanes: openEffectLanesSql(schema),
  waitingDestinations: waitingDestinationsSql(schema),
  takeEffects: takeEffectsSql(schema),
  settleEffects: settleEffectsSql(schema),
  renewEffectLeases: renewEffectLeasesSql(schema),
});

/** A whole batch in one call, by `outbox_id_pkey`. A function for the reasons of the claim. */
const sendEffectsSql = (schema: string): string => `
select ${schema}.outbox_send($1::text, $2::text::text[], $3::text::uuid[], $4::text::smallint[], $5::text::text[],
                             $6::text::text[], $7::text::text[], $8::text::text[], $9::text::text[], $10::text::text[],
                             $11::text::text[], $12::text::bytea[], $13::text::text[], $14::text::bytea[],
                             $15::text::bigint[], $16::text::bigint[], $17::boolean) as not_new`;

/** One row. */
const bundleEffectsSql = (schema: string): string => `
select ${schema}.outbox_bundle_up($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text,
                                  $9::text, $10::int)`;

/** By primary key, 64 rows once a destination. */
const openEffectLanesSql = (schema: string): string => `
insert into ${schema}.outbox_lane (destination, lane)
select d.name, lane from unnest($1::text::text[]) as d (name) cross join generate_series(0, 63) as lane
on conflict (destination, lane) do nothing`;

/**
 * Three probes a destination, of `outbox_ready`, `outbox_scheduled` and `outbox_bundle_destination`: this is what an idle
 * relay asks many times a second. From the marks on there are two probes a lane, 0.3 ms a destination.
 */
const waitingDestinationsSql = (schema: string): string => `
select name from ${schema}.outbox_with_work($1::text::text[], $2::boolean) as w (name)`;

/**
 * The lanes in their order, each with a probe of `outbox_ready` and `outbox_lane_scheduled` from its marks on, until the
 * hand is full; what is in a lane by the same indexes, keys that wait by `outbox_waiting`, bundles by
 * `outbox_bundle_destination`.
 */
const takeEffectsSql = (schema: string): string => `
select * from ${schema}.outbox_take($1::text, $2::text::uuid, $3::int, $4::int, $5::int, $6::text::bigint)`;

/** Lanes and effects by their primary keys. */
const settleEffectsSql = (schema: string): string => `
select ${schema}.outbox_settle($1::text, $2::text::uuid, $3::text::smallint[], $4::text::bigint[],
                               $5::text::smallint[], $6::text::bigint[], $7::text::bigint[], $8::text::text[],
                               $9::text::text[], $10::text::bigint[], $11::text::boolean[], $12::text::text[],
                               $13::text::text[], $14::text::integer[], $15::text::text[], $16::text::integer[]) as gone`;

/** By primary key. The exact taking, not only the lane: another owner's lease stays as it is. */
const renewEffectLeasesSql = (schema: string): string => `
update ${schema}.outbox_lane l
   set leased_until = clock_timestamp() + $4::int * interval '1 millisecond'
  from unnest($2::text::smallint[], $3::text::bigint[]) as d (lane, token)
 where l.destination = $1::text and l.lane = d.lane and l.lease_token = d.token and l.leased_until is not null
returning l.lane, l.lease_token::text as token`;
