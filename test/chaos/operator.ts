import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { postgres } from "../../src/store/postgres/postgres.ts";

/** Discards what went to quarantine and keeps its key waiting, so that the messages behind it go on. */
export interface Operator {
  /** Resolves true when nothing is pending any more, false when time is over. */
  nothingPending(late: AbortSignal): Promise<boolean>;
  stop(): Promise<void>;
}

const lookEveryMs = 200;

/** Works beside the kills; a server that is away is asked again later. */
export function startOperator(pool: pg.Pool, schema: string): Operator {
  const store = postgres(pool, { schema });
  let stopped = false;

  async function decide(): Promise<void> {
    const { rows } = await pool.query<{ id: string }>(
      "select id::text from quarantine where status = 'open' and blocking order by id limit 200",
    );
    for (const { id } of rows) {
      await store.quarantined.decide("discard", id, { by: "chaos", why: "it will never work" });
    }
  }

  async function main(): Promise<void> {
    while (!stopped) {
      await decide().catch(() => undefined);
      await sleep(lookEveryMs);
    }
  }

  const ended = main();
  return {
    async nothingPending(late) {
      while (!late.aborted) {
        const { rows } = await pool
          .query<{ n: number }>("select count(*)::int as n from pending")
          .catch(() => ({ rows: [] }));
        if (rows[0]?.n === 0) return true;
        await sleep(lookEveryMs);
      }
      return false;
    },
    async stop() {
      stopped = true;
      await ended;
    },
  };
}
