import { InboxError } from "../../errors.ts";
import type { AcceptedRecord, AcceptRecord } from "../pending.ts";
import type { LogMove } from "../log.ts";
import { standing } from "../standing.ts";
import type { ConsumerName } from "../store.ts";
import { timeArray } from "./array.ts";
import { followedFrom, followStatement, moveStatement, type FollowRow } from "./follow.ts";
import type { DriverConnection } from "./driver.ts";
import type { PostgresSql } from "./sql/all.ts";
import type { StoredParameters } from "./stored-messages.ts";

/**
 * Stores records and moves their logs' cursors past them in one transaction. Where not all of them can be stored none is: the
 * answer tells which could, and those are to be given again. `stored` for all means committed.
 */
export async function acceptRecords(
  connection: DriverConnection,
  sql: PostgresSql,
  name: ConsumerName,
  claimLockTimeoutMs: number,
  records: readonly AcceptRecord[],
  { identities, bodies }: StoredParameters,
): Promise<readonly AcceptedRecord[]> {
  void connection.query("begin isolation level read committed");
  void connection.query(`set local lock_timeout = ${claimLockTimeoutMs}`);
  const logs = new Map(records.map(({ position }) => [position.log, position]));
  // One order for all, as for every taking of several logs.
  const sorted = [...logs.values()].sort((a, b) => (a.log < b.log ? -1 : 1));
  const follow = followStatement(sql.followLogs, name.consumer, sorted);
  const { rows } = await connection.query<FollowRow>(follow.text, follow.values);
  const applied = new Map(followedFrom(rows).map((log) => [log.log, log.applied]));
  const answers = records.map(({ position }): AcceptedRecord => {
    const { log, record } = position;
    if (!applied.has(log) || logs.get(log)?.epoch !== position.epoch) return "lost";
    const stands = standing(record, applied.get(log));
    if (stands === "next") applied.set(log, record.offset);
    return stands === "next" ? "stored" : stands;
  });
  if (answers.some((answer) => answer !== "stored")) {
    await connection.query("rollback");
    return answers;
  }
  await connection.query(sql.accept, [
    ...[name.consumer, name.handlerVersion, claimLockTimeoutMs],
    ...[...identities, ...bodies],
    // Their places tell that they are new, however old they are.
    timeArray(records.map(() => ({}))),
  ]);
  const moves = sorted.map(({ log, epoch }): LogMove => ({ log, epoch, offset: applied.get(log) as bigint }));
  const move = moveStatement(sql.moveLogs, name.consumer, moves);
  await connection.query(move.text, move.values);
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new InboxError("commit-refused", "The records were not stored.");
  return answers;
}
