import { InboxError } from "../../errors.ts";
import type { CleanupLease, CleanupStore } from "../cleanup.ts";
import type { DriverConnection } from "./driver.ts";
import { safeText } from "./safe-text.ts";
import { cleanupSql } from "./sql/cleanup.ts";
import { cleanupStraysSql } from "./sql/cleanup-strays.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

interface StateColumns {
  readonly worker_id: string | null;
  readonly leased_until: Date | null;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  /** A bigint. */
  readonly identities: string;
  readonly last_error: string | null;
}

interface CutColumns {
  readonly consumer: string;
  readonly producer: string;
  readonly window_ms: number;
  readonly sources: number;
  /** JSON. */
  readonly waits_for: string;
  readonly before: Date | null;
}

interface StrayColumns {
  readonly due: boolean;
  readonly answer: number;
  readonly attempt: number;
  readonly discarded: number;
}

// For one transaction. A process that stops in there must not hold up claims of what it was forgetting.
const boundBatch =
  "select set_config('lock_timeout', $1::text, true), set_config('idle_in_transaction_session_timeout', '10s', true)";

interface BacklogColumns {
  readonly behind_ms: number;
  readonly oldest: Date | null;
  readonly needed_per_second: number | null;
  readonly done_per_second: number | null;
}

/** Forgetting in PostgreSQL: what may go is said by retention, where it lies by `ledger_stretch`. */
export function cleanupStore(schema: string, withConnection: WithConnection): CleanupStore {
  const sql = cleanupSql(schema);
  const straysSql = cleanupStraysSql(schema);
  const own = ({ workerId, token }: CleanupLease): readonly [string, string] => [workerId, token];

  const keep = async (connection: DriverConnection, lease: CleanupLease): Promise<boolean> =>
    (await connection.query(sql.keep, [...own(lease), lease.leaseMs])).rows.length > 0;

  return {
    take: (workerId, leaseMs, notWithinMs) =>
      withConnection(async (connection) => {
        const values = [workerId, leaseMs, String(notWithinMs)];
        const { rows } = await connection.query<{ token: string }>(sql.take, values);
        return rows[0] === undefined ? undefined : { workerId, token: rows[0].token, leaseMs };
      }),
    keep: (lease) => withConnection((connection) => keep(connection, lease)),
    give: (lease, error) =>
      withConnection(async (connection) => {
        const text = error === undefined ? null : safeText(error, 4_096);
        await connection.query(sql.give, [...own(lease), text]);
      }),

    cuts: () =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<CutColumns>(sql.cuts);
        return rows.map((row) => ({
          consumer: row.consumer,
          producer: row.producer === "" ? undefined : row.producer,
          ...{ windowMs: row.window_ms, sources: row.sources },
          waitsFor: JSON.parse(row.waits_for) as readonly string[],
          before: row.before ?? undefined,
        }));
      }),

    due: (lease) =>
      withConnection(async (connection) => {
        await connection.query(sql.forgetStops);
        await connection.query(sql.freshStretches, own(lease));
        await connection.query(sql.newStretches);
        const { rows } = await connection.query<{ page: number }>(sql.dueStretches);
        return rows.map(({ page }) => page);
      }),

    forget: (lease, { firstPage, pages, lockTimeoutMs }) =>
      withConnection(async (connection) => {
        await connection.query("begin isolation level read committed");
        await connection.query(boundBatch, [`${lockTimeoutMs}ms`]);
        if (!(await keep(connection, lease))) {
          await connection.query("rollback");
          return "lost";
        }
        // Before anything is deleted every claim knows what is forgotten; and no horizon moves until this is committed.
        await connection.query(sql.publishHorizon);
        const [from, to] = [`(${firstPage},0)`, `(${firstPage + pages},0)`];
        const { rows } = await connection.query<{ identities: number }>(sql.forgetPages, [from, to]);
        await connection.query(sql.dropStretches, [String(firstPage), String(firstPage + pages)]);
        const stretches = [String(firstPage), String(firstPage + pages)];
        await connection.query(sql.noteStretches, [from, to, ...stretches]);
        const { command } = await connection.query("commit");
        if (command !== "COMMIT") throw new InboxError("commit-refused", "A batch was rolled back.");
        return { identities: rows[0]?.identities ?? 0 };
      }),

    declareWindow: (consumer, windowMs) =>
      withConnection(async (connection) => {
        await connection.query(sql.declareWindow, [consumer, String(windowMs)]);
        const { rows } = await connection.query<{ window_ms: number | null }>(sql.windowOf, [consumer]);
        return rows[0]?.window_ms ?? undefined;
      }),

    shortestWindow: (consumer) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ window_ms: number | null }>(sql.shortestWindow, [consumer]);
        return rows[0]?.window_ms ?? undefined;
      }),

    withoutWindow: () =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ consumer: string }>(sql.withoutWindow);
        return rows.map(({ consumer }) => consumer);
      }),

    strays: () =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<StrayColumns>(straysSql.ranges);
        const { due, ...ends } = rows[0] ?? { due: false, answer: 0, attempt: 0, discarded: 0 };
        return { due, ends };
      }),

    forgetStrays: (kind, { from, to, lockTimeoutMs }) =>
      withConnection(async (connection) => {
        await connection.query("begin isolation level read committed");
        await connection.query(boundBatch, [`${lockTimeoutMs}ms`]);
        await connection.query(sql.publishHorizon);
        const range = kind === "discarded" ? [String(from), String(to)] : [`(${from},0)`, `(${to},0)`];
        const { rows } = await connection.query<{ gone: number }>(straysSql[kind], range);
        const { command } = await connection.query("commit");
        if (command !== "COMMIT") throw new InboxError("commit-refused", "A batch was rolled back.");
        return rows[0]?.gone ?? 0;
      }),

    backlog: (due) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<BacklogColumns>(sql.backlog, [JSON.stringify(due)]);
        const row = rows[0];
        return {
          behindMs: row?.behind_ms ?? 0,
          oldest: row?.oldest ?? undefined,
          neededPerSecond: row?.needed_per_second ?? undefined,
          donePerSecond: row?.done_per_second ?? undefined,
        };
      }),

    state: () =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<StateColumns>(sql.state);
        const row = rows[0];
        if (row === undefined) throw new InboxError("store-unavailable", "The row of cleanup is missing.");
        return {
          workerId: row.worker_id ?? undefined,
          leasedUntil: row.leased_until ?? undefined,
          startedAt: row.started_at ?? undefined,
          finishedAt: row.finished_at ?? undefined,
          identities: Number(row.identities),
          lastError: row.last_error ?? undefined,
        };
      }),
  };
}
