import { admin } from "./setup.ts";

export interface Backlog {
  readonly consumer: string;
  readonly messages: number;
  readonly keys: number;
}

const chunk = 100_000;

/** Puts messages into pending as accepts would have left them, in the order of arrival. */
export async function fillPending(
  url: string,
  schema: string,
  { consumer, messages, keys }: Backlog,
): Promise<void> {
  const statements: string[] = [];
  for (let from = 1; from <= messages; from += chunk) {
    const to = Math.min(messages, from + chunk - 1);
    statements.push(
      `with entry as materialized (
         select i, gen_random_uuid()::text as id, 1 + i % ${keys} as account from generate_series(${from}, ${to}) i
       ), named as materialized (
         select e.*, 'account-' || account as key, gen_random_uuid() as digest,
                convert_to('{"account":' || account || ',"delta":1,"note":"payment to ' || account || '","pad":"' ||
                           repeat('x', 100) || '"}', 'utf8') as payload
           from entry e
       ), ledger as (
         insert into ${schema}.message
           (digest, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
         select digest, '${consumer}', '', 'payments', id, sha256(payload), 'b', '1' from named
       )
       insert into ${schema}.pending
         (digest, lane, consumer, tenant, producer, message_id, message_key, headers, payload, fingerprint, fingerprint_mode)
       select digest, ${schema}.lane_of(key, digest), '${consumer}', '', 'payments', id, key, '{}', payload, sha256(payload), 'b'
         from named order by i`,
    );
  }
  await admin(url, [
    ...statements,
    `vacuum analyze ${schema}.pending`,
    `vacuum analyze ${schema}.message`,
    "checkpoint",
  ]);
}
