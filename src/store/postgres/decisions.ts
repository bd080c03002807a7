import { InboxError } from "../../errors.ts";
import type { BulkDecision, Decider } from "../quarantine-store.ts";
import type { DriverConnection } from "./driver.ts";
import { isRowId } from "./quarantine-read.ts";
import { safeText } from "./safe-text.ts";
import type { DecisionSql } from "./sql/decisions.ts";

/** Whatever the server's default is: what is read after a lock must be what is committed by then. */
export const begin = "begin isolation level read committed";

export const decidersValues = ({ by, why }: Decider): readonly [string, string] => [
  safeText(by, 256),
  safeText(why, 4_096),
];

/** Only the server's word makes a decision. */
export async function commit(connection: DriverConnection): Promise<void> {
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new InboxError("commit-refused", "The decision was rolled back.");
}

/** The row of a decision on one entry, in the open transaction; resolves with its id. */
export async function insertDecision(
  connection: DriverConnection,
  sql: DecisionSql,
  kind: string,
  entryId: string,
  decider: Decider,
): Promise<string> {
  const { rows } = await connection.query<{ id: string }>(sql.insert, [
    ...[kind, ...decidersValues(decider), JSON.stringify({ id: entryId })],
  ]);
  return rows[0]?.id ?? "";
}

interface DecisionColumns {
  readonly id: string;
  readonly kind: BulkDecision["kind"];
  readonly decided_at: Date;
  readonly decided_by: string;
  readonly reason: string;
  readonly filter: string;
  readonly matched: number;
  readonly decided: number;
  readonly skipped: number;
  readonly finished_at: Date | null;
}

const toDecision = (row: DecisionColumns): BulkDecision => ({
  ...{ id: row.id, kind: row.kind, at: row.decided_at, by: row.decided_by, why: row.reason },
  ...{ filter: row.filter, matched: row.matched, decided: row.decided, skipped: row.skipped },
  finishedAt: row.finished_at ?? undefined,
});

export async function findDecision(
  connection: DriverConnection,
  sql: DecisionSql,
  id: string,
): Promise<BulkDecision | undefined> {
  const { rows } = await connection.query<DecisionColumns>(sql.find, [id]);
  return rows[0] === undefined ? undefined : toDecision(rows[0]);
}

/** Decisions on many that have batches left, oldest first. */
export async function unfinishedDecisions(
  connection: DriverConnection,
  sql: DecisionSql,
): Promise<readonly BulkDecision[]> {
  const { rows } = await connection.query<DecisionColumns>(sql.unfinished);
  return rows.map(toDecision);
}

/** The last decisions, newest first, at most 1,000. */
export async function listDecisions(
  connection: DriverConnection,
  sql: DecisionSql,
  limit: number,
): Promise<readonly BulkDecision[]> {
  const { rows } = await connection.query<DecisionColumns>(sql.list, [Math.min(Math.max(limit, 1), 1_000)]);
  return rows.map(toDecision);
}

/** Locks entries, applies the decision to those that are still open, and resolves with how many it reached. */
export type DecideBatch = (decision: BulkDecision, entryIds: string) => Promise<number>;

/**
 * One batch of a decision on many, in one transaction. Dying in it leaves the batch for whoever carries on; a batch
 * that is committed is gone from the list, so nothing is decided twice, and what fails again is another entry.
 */
export async function carryOnDecision(
  connection: DriverConnection,
  sql: DecisionSql,
  decisionId: string,
  decideBatch: DecideBatch,
): Promise<BulkDecision | undefined> {
  if (!isRowId(decisionId)) return undefined;
  const known = await findDecision(connection, sql, decisionId);
  if (known === undefined || known.finishedAt !== undefined || known.kind === "purge") return known;
  void connection.query(begin);
  const { rows } = await connection.query<{ batch: number; entry_ids: string }>(sql.nextBatch, [decisionId]);
  const next = rows[0];
  if (next === undefined) {
    void connection.query(sql.finish, [decisionId]);
  } else {
    const total = next.entry_ids.split(",").length;
    const decided = await decideBatch(known, next.entry_ids);
    void connection.query(sql.finishBatch, [decisionId, next.batch, decided, total - decided]);
  }
  await commit(connection);
  return findDecision(connection, sql, decisionId);
}
