import type { TestContext } from "node:test";
import type pg from "pg";
import { postgres } from "../../src/index.ts";
import { createCleanup, type Cleanup, type CleanupOptions } from "../../src/retention/retention.ts";
import { ledgerCase } from "../reconcile/ledger-case.ts";
import { testPool } from "../support/postgres.ts";

export const hour = 3_600_000;

/** A source that was caught up since a week ago, and is so now, for as long as a test lasts. */
export async function caughtUp(
  pool: pg.Pool,
  { consumer = "accounting", source = "orders", sinceHours = 24 * 7 } = {},
): Promise<void> {
  await pool.query(
    `insert into source_clock (consumer, source, since, caught_up_at, advanced_at, every_ms)
     values ($1, $2, now() - $3 * interval '1 hour', now(), now(), 600000)`,
    [consumer, source, sinceHours],
  );
}

/** The times in which a source stood still, in hours before now. */
export async function stoodStill(pool: pg.Pool, fromHours: number, toHours: number): Promise<void> {
  await pool.query(
    `insert into source_stop (consumer, source, from_at, to_at)
     values ('accounting', 'orders', now() - $1 * interval '1 hour', now() - $2 * interval '1 hour')`,
    [fromHours, toHours],
  );
}

export type CleanupCase = Awaited<ReturnType<typeof cleanupCase>>;

/** A ledger of "accounting" whose one source is caught up, and a cleanup over a pool of its own with a window of a day. */
export async function cleanupCase(t: TestContext, url?: string) {
  const ledger = await ledgerCase(t, url);
  await caughtUp(ledger.pool);
  const cleanup = async (options: Partial<CleanupOptions> = {}): Promise<Cleanup> => {
    const pool = await testPool(t, { url: ledger.url, schema: ledger.schema, max: 1 });
    return createCleanup({
      store: postgres(pool, { schema: ledger.schema }),
      windowsMs: { accounting: 24 * hour },
      skewMs: 0,
      dutyPercent: 100,
      ...options,
    });
  };
  const ids = async (): Promise<string[]> =>
    (
      await ledger.pool.query<{ id: string }>(
        'select message_id as id from message order by message_id collate "C"',
      )
    ).rows.map(({ id }) => id);
  const count = async (): Promise<number> =>
    (await ledger.pool.query<{ n: number }>("select count(*)::int as n from message")).rows[0]!.n;
  return { ...ledger, cleanup, ids, count };
}
