/** By primary key. */
export const loadCursorSql = (schema: string): string => `
select position from ${schema}.cursor where consumer = $1::text and source = $2::text`;

/** By primary key. */
export const saveCursorSql = (schema: string): string => `
insert into ${schema}.cursor (consumer, source, position) values ($1::text, $2::text, $3::text)
on conflict (consumer, source) do update set position = excluded.position, updated_at = clock_timestamp()`;
