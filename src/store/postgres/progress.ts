import type { ProgressState, ProgressStore } from "../progress.ts";
import type { DriverConnection } from "./driver.ts";
import { progressSql } from "./sql/progress.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

interface ProgressColumns {
  readonly consumer: string;
  readonly source: string;
  readonly state: ProgressState;
  readonly since: Date | null;
  readonly caught_up_at: Date | null;
  readonly workers: number;
  readonly stood_ms: number;
}

/** The clocks of sources in PostgreSQL. */
export function progressStore(schema: string, withConnection: WithConnection): ProgressStore {
  const sql = progressSql(schema);
  return {
    report: (consumer, source, workerId, { behindMs, everyMs }) =>
      withConnection(async (connection) => {
        const behind = behindMs === undefined ? null : String(behindMs);
        await connection.query(sql.reportProgress, [consumer, source, workerId, behind, everyMs]);
      }),
    leave: (consumer, source, workerId) =>
      withConnection(async (connection) => {
        await connection.query(sql.leaveSource, [consumer, source, workerId]);
      }),
    list: (consumer) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<ProgressColumns>(sql.listProgress, [consumer ?? null]);
        return rows.map((row) => ({
          ...{ consumer: row.consumer, source: row.source, state: row.state, workers: row.workers },
          since: row.since ?? undefined,
          caughtUpAt: row.caught_up_at ?? undefined,
          stoodMs: Number(row.stood_ms),
        }));
      }),
    retire: (consumer, source) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ known: boolean }>(sql.retireSource, [consumer, source]);
        return rows[0]?.known === true;
      }),
  };
}
