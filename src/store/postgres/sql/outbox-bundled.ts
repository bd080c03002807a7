/** The effects of bundles `b`, a row each, as `e`; `n` is the place in the bundle, from 1. */
export const bundledEffects = `
 cross join lateral unnest(b.tenants::text[], b.producers::text[], b.ids::text[], b.keys::text[], b.types::text[],
                           b.payloads::text[])
        with ordinality as e (tenant, producer, id, key, type, payload, n)`;

/** What is told of an effect that waits, of one in a bundle. */
export const bundledColumns = `
       (b.position + e.n - 1)::text as position, b.destination, e.tenant, e.producer, e.id as effect_id,
       e.key as effect_key, e.type as effect_type, 'ready' as state, b.asked_at,
       (extract(epoch from clock_timestamp() - b.asked_at) * 1000)::float8 as waited_ms, null::timestamptz as due_at,
       null::timestamptz as expires_at, 0 as attempts, null as last_code, null as last_error,
       coalesce(octet_length(decode(e.payload, 'base64')), 0) as payload_bytes, false as sealed`;

/** The digest of a bundled effect, as the function outbox_unpack computes it. */
export const bundledDigest = `
       substr(encode(sha256(convert_to(
         octet_length(b.destination) || ':' || b.destination || octet_length(e.tenant) || ':' || e.tenant ||
         octet_length(e.producer) || ':' || e.producer || octet_length(e.id) || ':' || e.id, 'utf8')), 'hex'), 1, 32)::uuid`;
