import type { DriverConnection } from "./driver.ts";
import { quoteSchema } from "./schema-name.ts";

/** A stretch of the ledger's pages, and what in it is old enough to go. */
export interface ForgetBatch {
  readonly firstPage: number;
  readonly pages: number;
  /** How long ago it was applied, at least, in milliseconds, by the clock of the database. */
  readonly olderThanMs: number;
  /** How long to wait for a lock, in milliseconds. */
  readonly lockTimeoutMs: number;
}

/** `busy`: another worker is at it. */
export type Forgotten = { readonly kind: "busy" } | { readonly kind: "done"; readonly identities: number };

/**
 * Identities that are applied and old enough, of some pages; with their answers (answer_pkey) and failed attempts
 * (attempt_digest). By a scan of the pages, so no index on the time is needed, which would cost every claim; a sweep
 * reads each page once. What is stored and not applied stays, and so does the identity of an open entry (quarantine_digest):
 * a conflict's.
 */
const forgetSql = (schema: string): string => `
with gone as (
  delete from ${schema}.message m
   where m.ctid >= $1::text::tid and m.ctid < $2::text::tid
     and m.processed_at < clock_timestamp() - $3::text::float8 * interval '1 millisecond'
     and not exists (select from ${schema}.quarantine q where q.digest = m.digest and q.status = 'open')
  returning m.digest
), answers as (
  delete from ${schema}.answer a using gone where a.digest = gone.digest
), attempts as (
  delete from ${schema}.attempt t using gone where t.digest = gone.digest
)
select count(*)::int as identities from gone`;

/** Forgets a stretch in a transaction of its own. One worker at a time, whoever the others are: they are told `busy`. */
export async function forgetBatch(
  connection: DriverConnection,
  schemaName: string,
  { firstPage, pages, olderThanMs, lockTimeoutMs }: ForgetBatch,
): Promise<Forgotten> {
  await connection.query("begin");
  try {
    await connection.query("select set_config('lock_timeout', $1::text, true)", [`${lockTimeoutMs}ms`]);
    // Held until the transaction ends, so it works through a transaction-mode pooler and is gone with its holder.
    const { rows: lock } = await connection.query<{ mine: boolean }>(
      "select pg_try_advisory_xact_lock(hashtextextended($1::text, 0)) as mine",
      [`transactional-inbox forget ${schemaName}`],
    );
    if (lock[0]?.mine !== true) {
      await connection.query("rollback");
      return { kind: "busy" };
    }
    const { rows } = await connection.query<{ identities: number }>(forgetSql(quoteSchema(schemaName)), [
      `(${firstPage},0)`,
      `(${firstPage + pages},0)`,
      olderThanMs,
    ]);
    await connection.query("commit");
    return { kind: "done", identities: rows[0]?.identities ?? 0 };
  } catch (error) {
    await connection.query("rollback").catch(() => undefined);
    throw error;
  }
}

/** How many pages the ledger has now. */
export async function ledgerPages(connection: DriverConnection, schemaName: string): Promise<number> {
  const { rows } = await connection.query<{ pages: number }>(
    "select (pg_relation_size($1::text::regclass) / current_setting('block_size')::int)::float8 as pages",
    [`${quoteSchema(schemaName)}.message`],
  );
  return rows[0]?.pages ?? 0;
}
