/** How far a source has come: what each worker reports, put together by the clock of the database. */
export const progressFunctions = (schema: string): string => `
create function ${schema}.report_progress(
  consumer_name text, source_name text, worker uuid, behind_ms double precision, every_ms integer)
returns void
language plpgsql
volatile
as $function$
declare
  -- Not later than when it was sent, so that a wait for a lock makes nothing look younger.
  seen_at constant timestamptz := pg_catalog.statement_timestamp();
  patience constant interval := pg_catalog.make_interval(secs => every_ms::double precision / 250);
  held ${schema}.source_clock%rowtype;
  reached timestamptz;
begin
  insert into ${schema}.source_clock (consumer, source, every_ms) values (consumer_name, source_name, every_ms)
  on conflict (consumer, source) do nothing;
  select * into held from ${schema}.source_clock c
   where c.consumer = consumer_name and c.source = source_name for update;
  insert into ${schema}.source_worker as w (consumer, source, worker_id, caught_up_at, seen_until)
  values (consumer_name, source_name, worker, seen_at - pg_catalog.make_interval(secs => behind_ms / 1000),
          pg_catalog.clock_timestamp() + patience)
  on conflict (consumer, source, worker_id) do update
    set caught_up_at = greatest(w.caught_up_at, excluded.caught_up_at), seen_until = excluded.seen_until;
  delete from ${schema}.source_worker w
   where w.consumer = consumer_name and w.source = source_name and w.seen_until < pg_catalog.clock_timestamp();
  select case when count(*) = count(w.caught_up_at) then min(w.caught_up_at) end into reached
    from ${schema}.source_worker w
   where w.consumer = consumer_name and w.source = source_name;
  if reached is null or reached <= held.caught_up_at then
    return;
  end if;
  -- Nothing is known of the time between: the clock stood still.
  if reached > held.caught_up_at + patience then
    insert into ${schema}.source_stop (consumer, source, from_at, to_at)
    values (consumer_name, source_name, held.caught_up_at, reached);
  end if;
  update ${schema}.source_clock c
     set since = coalesce(c.since, reached), caught_up_at = reached, advanced_at = pg_catalog.clock_timestamp(),
         every_ms = report_progress.every_ms
   where c.consumer = consumer_name and c.source = source_name;
end
$function$;
comment on function ${schema}.report_progress is
  'A worker tells that all a source had behind_ms ago is settled; null: not yet. The source is as far as the slowest of its workers.';
`;
