import { hasCode, InboxError } from "../../errors.ts";
import type { Retention, RetentionScope, RetentionStore, Rotation } from "../retention.ts";
import type { DriverConnection } from "./driver.ts";
import type { PostgresSql } from "./sql/all.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

interface RetentionColumns {
  readonly consumer: string;
  readonly producer: string;
  /** A bigint, which drivers give as text. */
  readonly window_ms: string | number | null;
  readonly forgotten_to: Date | null;
  readonly horizon: Date | null;
}

const toRetention = (row: RetentionColumns): Retention => ({
  consumer: row.consumer,
  producer: row.producer === "" ? undefined : row.producer,
  windowMs: row.window_ms === null ? undefined : Number(row.window_ms),
  forgottenTo: row.forgotten_to ?? undefined,
  horizon: row.horizon ?? undefined,
});

/** Windows and horizons in PostgreSQL. */
export function retentionStore(sql: PostgresSql, withConnection: WithConnection): RetentionStore {
  /** One change at a time; the mark of it is set behind its commit. Dying between them leaves that to the next batch of cleanup. */
  async function change<T>(
    connection: DriverConnection,
    work: (connection: DriverConnection) => Promise<T>,
  ): Promise<T> {
    // Whatever the server's default is: what is read after the lock must be what is committed by then.
    void connection.query("begin isolation level read committed");
    void connection.query(sql.lockRetention);
    const answer = await work(connection);
    void connection.query(sql.raiseMark);
    const { command } = await connection.query("commit");
    if (command !== "COMMIT")
      throw new InboxError("commit-refused", "The change of retention was rolled back.");
    await publishHorizon(connection, sql);
    return answer;
  }

  const keyOf = ({ consumer, producer }: RetentionScope): readonly [string, string] => [
    consumer,
    producer ?? "",
  ];

  const find = async (
    connection: DriverConnection,
    scope: RetentionScope,
  ): Promise<Retention | undefined> => {
    const { rows } = await connection.query<RetentionColumns>(sql.findRetention, keyOf(scope));
    return rows[0] === undefined ? undefined : toRetention(rows[0]);
  };

  return {
    list: (consumer) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<RetentionColumns>(sql.listRetention, [consumer ?? null]);
        return rows.map(toRetention);
      }),
    setWindow: (scope, windowMs) =>
      withConnection((connection) =>
        change(connection, async () => {
          const values = [...keyOf(scope), windowMs === undefined ? null : String(windowMs)];
          const { rows } = await connection.query<RetentionColumns>(sql.setWindow, values);
          if (rows[0] === undefined) throw new InboxError("store-unavailable", "The window was not set.");
          return toRetention(rows[0]);
        }),
      ),
    advance: (scope, { skewMs, notAfter }) =>
      withConnection((connection) =>
        change(connection, async () => {
          await connection.query(sql.advanceHorizon, [
            ...keyOf(scope),
            String(skewMs),
            notAfter?.toISOString() ?? null,
          ]);
          return find(connection, scope);
        }),
      ),
    rotate: ({ windowMs, skewMs, notAfter, lockTimeoutMs }) =>
      withConnection(async (connection) => {
        void connection.query("begin isolation level read committed");
        void connection.query("select set_config('lock_timeout', $1::text, true)", [`${lockTimeoutMs}ms`]);
        try {
          const values = [String(windowMs), String(skewMs), notAfter?.toISOString() ?? null];
          const { rows } = await connection.query<{ rotation: Rotation }>(sql.rotate, values);
          const { command } = await connection.query("commit");
          if (command === "COMMIT" && rows[0] !== undefined) return rows[0].rotation;
          throw new InboxError("commit-refused", "The rotation was rolled back.");
        } catch (error) {
          // A lock that was not had in time, or a deadlock that this side lost.
          if (!hasCode(error, "55P03") && !hasCode(error, "40P01")) throw error;
          await connection.query("rollback");
          return "busy";
        }
      }),
    noteReach: ({ lockTimeoutMs }) =>
      withConnection(async (connection) => {
        // Each statement with a snapshot of its own: what is read must be from behind the lock.
        void connection.query("begin isolation level read committed");
        void connection.query("select set_config('lock_timeout', $1::text, true)", [`${lockTimeoutMs}ms`]);
        try {
          const { rows } = await connection.query<{ noted: boolean }>(sql.noteReach);
          const { command } = await connection.query("commit");
          return command === "COMMIT" && rows[0]?.noted === true;
        } catch (error) {
          // A rotation was in the way, or a statement may not take as long.
          if (!hasCode(error, "55P03") && !hasCode(error, "57014")) throw error;
          await connection.query("rollback");
          return false;
        }
      }),
    generations: () =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ open: number | null; closed_at: Date | null }>(
          sql.generations,
        );
        return { open: rows[0]?.open ?? undefined, closedAt: rows[0]?.closed_at ?? undefined };
      }),
  };
}

/** Makes the last committed change known to all claims. */
export async function publishHorizon(
  connection: DriverConnection,
  sql: Pick<PostgresSql, "publishHorizon">,
): Promise<void> {
  void connection.query("begin isolation level read committed");
  void connection.query(sql.publishHorizon);
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new InboxError("commit-refused", "The horizon was not made known.");
}
