import { admin } from "../setup.ts";
import { destination } from "./job.ts";

const chunk = 20_000;
const bundleSize = 250;

/** Asks for so many effects of a thousand keys, as transactions would have, with a payload of 170 bytes. */
export async function fillOutbox(
  url: string,
  schema: string,
  effects: number,
  bundled: boolean,
): Promise<void> {
  const statements: string[] = [];
  for (let from = 1; bundled && from <= effects; from += bundleSize) {
    const to = Math.min(effects, from + bundleSize - 1);
    statements.push(
      `select ${schema}.outbox_bundle_up('${destination}', array_agg(''::text)::text, array_agg('orders'::text)::text,
                array_agg('effect-' || i order by i)::text, array_agg('account-' || i % 1000 order by i)::text,
                array_agg(null::text)::text, array_agg(null::text)::text, array_agg('{}'::text)::text,
                array_agg(translate(encode(convert_to('{"account":' || i % 1000 || ',"delta":1,"pad":"' || repeat('x', 140) || '"}', 'utf8'),
                                 'base64'), chr(10), '') order by i)::text, count(*)::int)
         from generate_series(${from}, ${to}) i`,
    );
  }
  for (let from = 1; !bundled && from <= effects; from += chunk) {
    const to = Math.min(effects, from + chunk - 1);
    statements.push(
      `with effect as materialized (
         select i, gen_random_uuid() as digest, 'account-' || i % 1000 as key,
                convert_to('{"account":' || i % 1000 || ',"delta":1,"pad":"' || repeat('x', 140) || '"}', 'utf8') as payload
           from generate_series(${from}, ${to}) i
       )
       select ${schema}.outbox_send(null, array_agg('${destination}'::text order by i), array_agg(digest order by i),
                array_agg((get_byte(sha256(convert_to(key, 'utf8')), 0) % 64)::smallint order by i),
                array_agg(''::text), array_agg('orders'::text), array_agg('effect-' || i order by i),
                array_agg(key order by i), array_agg(null::text), array_agg(null::text), array_agg('{}'::text),
                array_agg(payload order by i), array_agg(null::text), array_agg(sha256(payload) order by i),
                array_agg(null::bigint), array_agg(null::bigint), false)
         from effect`,
    );
  }
  await admin(url, [
    ...statements,
    `vacuum analyze ${schema}.outbox`,
    `vacuum analyze ${schema}.outbox_id`,
    "checkpoint",
  ]);
}
