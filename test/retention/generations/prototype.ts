/** As many generations as are kept at once: one open, the others closed and only read. */
export const ring = 3;

const leaf = (n: number): string => `identity_${((n % ring) + ring) % ring}`;

/**
 * The protocol of generations in SQL, in a schema of the test's own: what docs/decisions proposes for the ledger, with
 * as few columns as it needs. A ring of tables that are truncated in turn: no DDL while it runs, no dead rows, and
 * plans that name their tables.
 */
export const prototypeSql = (options: { readonly guarded: boolean } = { guarded: true }): string => `
create table generation (
  open     integer not null,
  oldest   integer not null,
  horizon  timestamptz not null default '-infinity',
  one      boolean primary key default true check (one)
);
insert into generation (open, oldest) values (0, 0);
create table closed (generation integer primary key, at timestamptz not null);

${Array.from(
  { length: ring },
  (_, n) => `create table ${leaf(n)} (digest uuid primary key, processed_at timestamptz);`,
).join("\n")}

create function claim(digests uuid[], sent timestamptz[]) returns table (digest uuid, verdict text)
language plpgsql as $function$
#variable_conflict use_column
declare
  g generation;
  added uuid[];
begin
  ${
    options.guarded
      ? `if current_setting('transaction_isolation') = 'read committed' then
    -- Waits while a generation is opened or forgotten; the statements behind it see what came of it.
    lock table generation in row share mode;
    select * into g from generation;
  else
    -- Fails with 40001 if the row changed after the transaction's snapshot, and keeps it as it is until the end.
    select * into g from generation for share;
  end if;`
      : "select * into g from generation;\n  perform pg_sleep(0);"
  }
  ${Array.from({ length: ring }, (_, n) => insertInto(n)).join("\n  ")}
  return query
    select c.digest,
           case when c.digest = any (added) then 'new'
                when exists (select from identity_0 i where i.digest = c.digest and i.processed_at is not null)
                  or exists (select from identity_1 i where i.digest = c.digest and i.processed_at is not null)
                  or exists (select from identity_2 i where i.digest = c.digest and i.processed_at is not null) then 'duplicate'
                when exists (select from identity_0 i where i.digest = c.digest)
                  or exists (select from identity_1 i where i.digest = c.digest)
                  or exists (select from identity_2 i where i.digest = c.digest) then 'stored'
                else 'late' end
      from unnest(digests) as c (digest);
end
$function$;

create function open_generation() returns boolean language plpgsql as $function$
declare
  g generation;
begin
  lock table generation in exclusive mode;
  select * into g from generation for update;
  if g.open + 1 - g.oldest >= ${ring} then
    return false;
  end if;
  insert into closed values (g.open, clock_timestamp());
  update generation set open = open + 1;
  return true;
end
$function$;

-- Skew: by how much a producer's clock may run ahead.
create function forget_generation(older_than interval, skew interval) returns boolean language plpgsql as $function$
declare
  g generation;
  closed_at timestamptz;
begin
  lock table generation in exclusive mode;
  select * into g from generation for update;
  select at into closed_at from closed where generation = g.oldest;
  if g.oldest >= g.open or closed_at > clock_timestamp() - older_than then
    return false;
  end if;
  ${Array.from(
    { length: ring },
    (_, open) => `if g.open % ${ring} = ${open} then
    ${Array.from({ length: ring }, (_, old) => old)
      .filter((old) => old !== open)
      .map(
        (old) => `if g.oldest % ${ring} = ${old} then
      -- What is stored and not applied keeps its identity as long as its body lives.
      insert into ${leaf(open)} select * from ${leaf(old)} where processed_at is null on conflict do nothing;
      truncate ${leaf(old)};
    end if;`,
      )
      .join("\n    ")}
  end if;`,
  ).join("\n  ")}
  delete from closed where generation = g.oldest;
  update generation set oldest = oldest + 1, horizon = greatest(horizon, closed_at + skew);
  return true;
end
$function$;
`;

/** The insert of a claim while generation `n` of the ring is open. */
const insertInto = (n: number): string => `if g.open % ${ring} = ${n} then
    with new as (
      insert into ${leaf(n)} as i
      select c.digest, now()
        from unnest(digests, sent) as c (digest, sent)
       where (c.sent is null or c.sent >= g.horizon)
         and (g.oldest > g.open - 1 or not exists (select from ${leaf(n - 1)} o where o.digest = c.digest))
         and (g.oldest > g.open - 2 or not exists (select from ${leaf(n - 2)} o where o.digest = c.digest))
       order by c.digest
      on conflict do nothing
      returning i.digest
    )
    select array_agg(new.digest) into added from new;
  end if;`;
