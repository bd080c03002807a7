import { quotedIn } from "./0009-claim-functions.ts";
import { claimWithinReach } from "./0013-claim-functions.ts";
import type { Migration } from "./migration.ts";

/** How far the ids of the closed generation reach: what lies beyond is not in it, and no claim looks there for it. */
export const migration0013: Migration = {
  version: 13,
  name: "closed-reach",
  sql: (schema) => `
create table ${schema}.closed_reach (
  consumer    text collate "C" not null,
  producer    text collate "C" not null,
  generation  bigint not null,
  last_id     text collate "C" not null,
  constraint closed_reach_pkey primary key (consumer, producer)
);
comment on table ${schema}.closed_reach is
  'The last id of each producer in message_closed, by length and then by bytes: a later one is not in there. Without a row nothing is known.';
comment on column ${schema}.closed_reach.generation is
  'The number of the open generation when this was noted; with any other number it says nothing.';

create function ${schema}.note_reach() returns boolean
language plpgsql
volatile
as $function$
declare
  open_generation bigint;
begin
  if pg_catalog.current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'note_reach needs the isolation level read committed.';
  end if;
  -- Until the end. Behind it no rotation gives out a number, so the number is that of what is read.
  lock table ${schema}.message_closed in access share mode;
  open_generation := pg_catalog.pg_sequence_last_value(${quotedIn(schema, "generation")});
  if open_generation is null
     or exists (select from ${schema}.closed_reach r where r.generation = open_generation) then
    return false;
  end if;
  delete from ${schema}.closed_reach;
  -- Of a consumer with thousands of producers nothing is noted: its table would be no smaller than what it saves.
  insert into ${schema}.closed_reach (consumer, producer, generation, last_id)
  select p.consumer, p.producer, open_generation, substr(p.last, 5)
    from (select m.consumer, m.producer, count(*) over (partition by m.consumer) as producers,
                 max((lpad(octet_length(m.message_id)::text, 4, '0') || m.message_id) collate "C") as last
            from ${schema}.message_closed m
           group by m.consumer, m.producer) p
   where p.producers <= 1000
  on conflict (consumer, producer) do nothing;
  return true;
end
$function$;
comment on function ${schema}.note_reach is
  'Notes how far the ids of the closed generation reach, by one scan of it; false: that is known, or nothing is closed. A rotation waits for it, claims do not. For the owner of the tables.';
${claimWithinReach(schema)}`,
};
