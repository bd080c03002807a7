/**
 * What the ledger holds for messages that could not be taken; claim and accept end in it. A function of its own sees what
 * the insert waited for: its statement has a newer snapshot. `repairs`: where that table is there already, a body that a
 * repair gave in place of the first one is known too, so that neither body's redelivery is a conflict.
 */
export const notNewFunction = (schema: string, { repairs = false } = {}): string => `
create or replace function ${schema}.not_new(digests uuid[], fingerprints bytea[], modes text[], taken uuid[])
returns text
language plpgsql
volatile
as $function$
begin
  return (
    select json_agg(json_build_array(
             c.digest, m.tenant, m.producer, m.message_id, encode(${repairs ? "coalesce(r.fingerprint, m.fingerprint)" : "m.fingerprint"}, 'hex'),
             ${repairs ? "coalesce(r.fingerprint_mode, m.fingerprint_mode)" : "m.fingerprint_mode"}, m.processed_at is not null))
      from unnest(digests, fingerprints, modes) as c (digest, fingerprint, mode)
      left join ${schema}.message m on m.digest = c.digest${
        repairs
          ? `
      left join lateral (
        select o.fingerprint, o.fingerprint_mode from ${schema}.repair o
         where m.fingerprint <> c.fingerprint
           and o.digest = c.digest and o.fingerprint = c.fingerprint and o.fingerprint_mode = c.mode
         limit 1) r on true`
          : ""
      }
     where taken is null or c.digest <> all (taken));
end
$function$;
comment on function ${schema}.not_new is
  'For each message that is not among those taken, what is committed for its identity: a JSON array of rows.';
`;
