import { InboxError } from "../../errors.ts";
import type { ForgetLease, OutboxOperatorStore } from "../outbox-operator.ts";
import type { DriverConnection } from "./driver.ts";
import type { OutboxForgetSql } from "./sql/outbox-forget.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

type Forgetting = Pick<
  OutboxOperatorStore,
  "takeForgetting" | "giveForgetting" | "effectPages" | "forgetEffects" | "forgetBodies"
>;

/** Forgetting effects in batches, one worker at a time. */
export function forgetting(sql: OutboxForgetSql, withConnection: WithConnection): Forgetting {
  /** One batch in a transaction of its own, under the lease. Dying in it forgets nothing of it. */
  const batch = (
    { token, leaseMs }: ForgetLease,
    lockTimeoutMs: number,
    text: string,
    values: readonly unknown[],
  ): Promise<number | "lost"> =>
    withConnection(async (connection) => {
      void connection.query("begin isolation level read committed");
      void connection.query("select set_config('lock_timeout', $1::text, true)", [`${lockTimeoutMs}ms`]);
      const { rows: held } = await connection.query(sql.holdForgetting, [token, leaseMs]);
      if (held.length === 0) {
        await connection.query("rollback");
        return "lost";
      }
      const { rows } = await connection.query<{ effects: number }>(text, values);
      const { command } = await connection.query("commit");
      if (command !== "COMMIT") throw new InboxError("commit-refused", "Nothing was forgotten.");
      return rows[0]?.effects ?? 0;
    });

  return {
    takeForgetting: (workerId, leaseMs) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ token: string }>(sql.takeForgetting, [workerId, leaseMs]);
        return rows[0] && { token: rows[0].token, leaseMs };
      }),
    giveForgetting: ({ token }) =>
      withConnection(async (connection) => void (await connection.query(sql.giveForgetting, [token]))),
    effectPages: () =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ pages: number }>(sql.effectPages);
        return rows[0]?.pages ?? 0;
      }),
    forgetEffects: (lease, { firstPage, pages, olderThanMs, lockTimeoutMs }) =>
      batch(lease, lockTimeoutMs, sql.forgetEffects, [
        ...[`(${firstPage},0)`, `(${firstPage + pages},0)`, olderThanMs],
      ]),
    forgetBodies: (lease, olderThanMs) => batch(lease, 1_000, sql.forgetBodies, [olderThanMs]),
  };
}
