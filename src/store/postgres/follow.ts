import { InboxError } from "../../errors.ts";
import type { FollowedLog, LogMove, LogPosition, RecordPosition } from "../log.ts";
import { standing } from "../standing.ts";
import type { Statement } from "../statement.ts";
import { numberArray, textArray } from "./array.ts";
import type { DriverConnection } from "./driver.ts";
import type { PostgresSql } from "./sql/all.ts";

export interface FollowRow {
  readonly log: string;
  readonly epoch: string;
  readonly applied: string | null;
  readonly parked: boolean;
}

// As long as what is stored aside waits for the lease of a pending message.
const lockTimeoutMs = 1_000;

/** The statement that locks logs under their owners' epochs and tells how far they are applied. */
export const followStatement = (
  text: string,
  consumer: string,
  positions: readonly LogPosition[],
): Statement & { readonly values: readonly unknown[] } => ({
  text,
  values: [
    consumer,
    textArray(positions.map(({ log }) => log)),
    numberArray(positions.map(({ epoch }) => epoch)),
  ],
});

export const followedFrom = (rows: readonly FollowRow[]): readonly FollowedLog[] =>
  rows.map(({ log, epoch, applied }) => ({
    log,
    epoch,
    applied: applied === null ? undefined : BigInt(applied),
  }));

/** The statement that moves cursors, under the lock of `follow`. */
export const moveStatement = (
  text: string,
  consumer: string,
  moves: readonly LogMove[],
): Statement & { readonly values: readonly unknown[] } => ({
  text,
  values: [
    consumer,
    textArray(moves.map(({ log }) => log)),
    numberArray(moves.map(({ epoch }) => epoch)),
    numberArray(moves.map(({ offset }) => String(offset))),
  ],
});

/**
 * Locks the log in a transaction that is to store one record aside, and tells whether that was done before. Rejects with
 * `log-lost` where this process is not the owner any more, and `log-gap` where the record is not the next one.
 */
export async function wasPassed(
  connection: DriverConnection,
  sql: PostgresSql,
  consumer: string,
  position: RecordPosition,
): Promise<boolean> {
  void connection.query(`set local lock_timeout = ${lockTimeoutMs}`);
  const { text, values } = followStatement(sql.followLogs, consumer, [position]);
  const [log] = followedFrom((await connection.query<FollowRow>(text, values)).rows);
  if (log === undefined) throw lostLog(position);
  const stands = standing(position.record, log.applied);
  if (stands === "gap") throw gapIn(position);
  return stands === "passed";
}

/** Moves the cursor past one record, in the transaction of `wasPassed`. Not waited for: if it fails nothing commits. */
export function passRecord(
  connection: DriverConnection,
  sql: PostgresSql,
  consumer: string,
  { log, epoch, record }: RecordPosition,
): void {
  const { text, values } = moveStatement(sql.moveLogs, consumer, [{ log, epoch, offset: record.offset }]);
  connection.query(text, values).catch(() => undefined);
}

const lostLog = ({ log }: LogPosition): InboxError =>
  new InboxError("log-lost", `Another process reads ${log} now; it applies what comes next.`);

const gapIn = ({ log, record: { offset, previous } }: RecordPosition): InboxError =>
  new InboxError("log-gap", `${log}: offset ${offset} comes behind ${previous}, which is not done.`);
