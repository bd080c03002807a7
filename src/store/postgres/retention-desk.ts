import { InboxError } from "../../errors.ts";
import type { Decider } from "../quarantine-store.ts";
import type {
  Erased,
  EraseOutcome,
  EraseRequest,
  RetentionDecision,
  RetentionDesk,
} from "../retention-desk.ts";
import { numberArray, textArray } from "./array.ts";
import type { DriverConnection } from "./driver.ts";
import { safeJson, safeText } from "./safe-text.ts";
import { retentionDeskSql } from "./sql/retention-desk.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

interface DecisionColumns {
  readonly id: string;
  readonly kind: RetentionDecision["kind"];
  readonly decided_at: Date;
  readonly decided_by: string;
  readonly reason: string;
  readonly consumer: string;
  readonly subject: string;
}

/** What operators do about keeping, in PostgreSQL. */
export function retentionDesk(schema: string, withConnection: WithConnection): RetentionDesk {
  const sql = retentionDeskSql(schema);

  async function record(
    connection: DriverConnection,
    kind: RetentionDecision["kind"],
    consumer: string,
    subject: string,
    { by, why }: Decider,
  ): Promise<string> {
    const values = [kind, safeText(by, 256), safeText(why, 4_096), consumer, subject];
    const { rows } = await connection.query<{ id: string }>(sql.record, values);
    return rows[0]?.id ?? "";
  }

  return {
    decisions: (limit) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<DecisionColumns>(sql.list, [limit]);
        return rows.map(({ id, kind, consumer, subject, ...row }) => ({
          ...{ id, kind, consumer, subject },
          ...{ at: row.decided_at, by: row.decided_by, why: row.reason },
        }));
      }),
    record: (kind, consumer, subject, decider) =>
      withConnection((connection) => record(connection, kind, consumer, subject, decider)),
    countOlder: ({ consumer, producer }, windowMs) =>
      withConnection(async (connection) => {
        const values = [consumer, producer ?? "", String(windowMs)];
        const { rows } = await connection.query<{ identities: number }>(sql.countOlder, values);
        return rows[0]?.identities ?? 0;
      }),

    erase: (request, decider) =>
      withConnection(async (connection) => {
        await connection.query("begin isolation level read committed");
        await connection.query("select set_config('lock_timeout', '5s', true)");
        const outcome = await eraseBodies(connection, request);
        if (outcome.kind !== "erased" || request.dryRun) {
          await connection.query("rollback");
          return outcome;
        }
        const subject = safeJson({ ...request.identity, erased: outcome.erased }, Number.POSITIVE_INFINITY);
        const decision = await record(connection, "erase", request.consumer, subject, decider);
        const { command } = await connection.query("commit");
        if (command !== "COMMIT") throw new InboxError("commit-refused", "The erasure was rolled back.");
        return { ...outcome, decision };
      }),
  };

  /** In the order in which workers lock: what is pending, then entries, then the identity. */
  async function eraseBodies(
    connection: DriverConnection,
    { digest, discard, effects }: EraseRequest,
  ): Promise<EraseOutcome> {
    const names = [
      textArray(effects.map(({ destination }) => destination)),
      textArray(effects.map(({ id }) => id)),
    ];
    const changed = async (text: string, values: readonly unknown[] = [digest]): Promise<number> =>
      (await connection.query(text, values)).rowCount ?? 0;
    const pending = (await connection.query(sql.lockPending, [digest])).rows.length;
    const { rows: entries } = await connection.query<{ id: string; open: boolean }>(sql.lockEntries, [
      digest,
    ]);
    const identity = (await connection.query(sql.lockIdentity, [digest])).rows.length;
    const open = entries.filter((entry) => entry.open).length;
    if (identity === 0 && pending === 0 && entries.length === 0) return { kind: "unknown" };
    if ((pending > 0 || open > 0) && !discard) return { kind: "undecided", pending, open };
    const { rows: waiting } = await connection.query<{ effects: number }>(sql.countWaitingEffects, [
      digest,
      ...names,
    ]);
    if ((waiting[0]?.effects ?? 0) > 0) return { kind: "to be sent", effects: waiting[0]?.effects ?? 0 };
    await connection.query(sql.discardPending, [digest]);
    const { rows: discarded } = await connection.query<{ id: string }>(sql.discardOpen, [digest]);
    if (discarded.length > 0) {
      await connection.query(sql.releaseKeys, [numberArray(discarded.map(({ id }) => id))]);
    }
    const erased: Erased = {
      pending,
      quarantine: await changed(sql.eraseEntries),
      repairs: await changed(sql.eraseRepairs),
      answers: await changed(sql.eraseAnswer),
      attempts: await changed(sql.eraseAttempts),
      effects:
        (await changed(sql.eraseRefusals, [digest, ...names])) +
        (await changed(sql.eraseResults, [digest, ...names])),
    };
    return { kind: "erased", erased, decision: "" };
  }
}
