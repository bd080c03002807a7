/**
 * The consumer's rows of some producers, applied in a span: $1 consumer, $2 producers, $3 tenant, $4 from, $5 to. The
 * ledger's only index is that of the digests, and one more would cost every claim; so this is a scan of the table, by
 * several processes where the server has them. A brin index on processed_at is used where somebody made one.
 */
const applied = `
       m.consumer = $1::text and m.producer = any ($2::text::text[]) and ($3::text is null or m.tenant = $3::text)
   and m.processed_at >= $4::text::timestamptz and m.processed_at < $5::text::timestamptz`;

const bucket = "get_byte(uuid_send(m.digest), 0) * 256 + get_byte(uuid_send(m.digest), 1)";

/**
 * `BucketSums` of what was applied, the same as `createAdder` computes; $6 is the salt, in hex. Sums of bigint are exact.
 */
const appliedSumsSql = (schema: string, payloads: boolean): string => `
select bucket, count(*)::int as entries,
       sum(('x' || substr(salted, 1, 16))::bit(64)::bigint)::text as high,
       sum(('x' || substr(salted, 17, 16))::bit(64)::bigint)::text as low
  from (select ${bucket} as bucket,
               encode(sha256(decode($6::text, 'hex') || uuid_send(m.digest)${
                 payloads
                   ? ` || convert_to(m.fingerprint_mode, 'UTF8') || '\\x00'::bytea || m.fingerprint`
                   : ""
               }), 'hex') as salted
          from ${schema}.ledger m
         where ${applied} offset 0) as rows
 group by bucket`;

/** The rows of some buckets; $6 is a bit for each. */
const appliedRowsSql = (schema: string): string => `
select replace(m.digest::text, '-', '') as digest, m.tenant, m.producer, m.message_id, m.processed_at
  from ${schema}.ledger m
 where ${applied} and get_bit(decode($6::text, 'hex'), ${bucket}) = 1`;

/** What there is of some identities, by primary key, pending_pkey and quarantine_digest. */
const standingSql = (schema: string): string => `
select c.n::int - 1 as n, m.digest is not null as there, m.processed_at, m.tenant, m.producer, m.message_id,
       encode(m.fingerprint, 'hex') as fingerprint, m.fingerprint_mode, p.state as pending,
       q.id::text as entry, q.status as entry_status
  from unnest($1::text::uuid[]) with ordinality as c (digest, n)
  left join ${schema}.ledger m on m.digest = c.digest
  left join ${schema}.pending p on p.digest = c.digest
  left join lateral (select e.id, e.status from ${schema}.quarantine e where e.digest = c.digest
                      order by e.status = 'open' desc, e.id desc limit 1) q on true`;

/** The statements that read the consumer's side of a comparison. */
export const ledgerSql = (schema: string) => ({
  now: "select clock_timestamp() as now",
  appliedSums: appliedSumsSql(schema, false),
  appliedPayloadSums: appliedSumsSql(schema, true),
  appliedRows: appliedRowsSql(schema),
  standing: standingSql(schema),
});
