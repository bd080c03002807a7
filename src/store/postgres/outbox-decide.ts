import { InboxError } from "../../errors.ts";
import { showValue } from "../../message/show-value.ts";
import type { EffectRepair, RefusedFilter } from "../outbox-operator.ts";
import type { Protection, StoredBody } from "../protection.ts";
import type { BulkAnswer, BulkDecision, Decider } from "../quarantine-store.ts";
import { numberArray } from "./array.ts";
import type { DriverConnection } from "./driver.ts";
import { refusedValues, showRefused } from "./outbox-read.ts";
import { bodyOwner } from "./outbox-send.ts";
import { isRowId } from "./quarantine-read.ts";
import { safeJson, safeText } from "./safe-text.ts";
import type { OutboxOperatorSql } from "./sql/outbox-operator.ts";

type Sql = OutboxOperatorSql;

// Whatever the server's default is: what is read after a lock must be what is committed by then.
const begin = "begin isolation level read committed";

const decidersValues = ({ by, why }: Decider): readonly [string, string] => [
  safeText(by, 256),
  safeText(why, 4_096),
];

/** Decides on one entry in one transaction. Dying before its commit decides nothing. */
export async function decideOnEffect(
  connection: DriverConnection,
  sql: Sql,
  kind: "retry" | "discard",
  id: string,
  decider: Decider,
): Promise<string | InboxError> {
  if (!isRowId(id)) return missing(id);
  const decision = await lockAndRecord(connection, sql, kind, id, decider);
  const decided = await apply(connection, sql, kind, numberArray([id]), decision, decider);
  return decided === 0 ? refusal(connection, sql, id) : committed(connection, decision);
}

/** Gives an effect back with another body, under the same id. */
export async function repairOneEffect(
  connection: DriverConnection,
  sql: Sql,
  protection: Protection,
  id: string,
  { headers, payload }: EffectRepair,
  decider: Decider,
): Promise<string | InboxError> {
  const entry = await showRefused(connection, sql, id);
  if (entry === undefined) return missing(id);
  // Sealed before the transaction is open: a key service may take its time.
  const body: StoredBody = await protection.seal(
    bodyOwner(entry.destination, entry.digest),
    { headers, payload },
    safeJson(headers, Number.POSITIVE_INFINITY),
  );
  const decision = await lockAndRecord(connection, sql, "repair", id, decider);
  const { rows } = await connection.query(sql.repairEffect, [
    ...[id, decision, body.headers, body.payload, body.keyId],
  ]);
  return rows.length === 0 ? refusal(connection, sql, id) : committed(connection, decision);
}

/** Two operators at once: the second waits for the first one's lock, and then finds nothing open. */
async function lockAndRecord(
  connection: DriverConnection,
  sql: Sql,
  kind: "retry" | "repair" | "discard",
  id: string,
  decider: Decider,
): Promise<string> {
  const ids = numberArray([id]);
  void connection.query(begin);
  void connection.query(sql.lockEffectLanes, [ids]);
  void connection.query(sql.lockRefusals, [ids]);
  const { rows } = await connection.query<{ id: string }>(sql.insertOutboxDecision, [
    ...[kind, ...decidersValues(decider), JSON.stringify({ id })],
  ]);
  return rows[0]?.id ?? "";
}

/** Applies a decision to locked entries and resolves with how many it reached. */
async function apply(
  connection: DriverConnection,
  sql: Sql,
  kind: "retry" | "discard",
  ids: string,
  decision: string,
  decider: Decider,
): Promise<number> {
  if (kind === "retry") return (await connection.query(sql.retryEffects, [ids, decision])).rows.length;
  const [by, why] = decidersValues(decider);
  const reason = `discarded by ${by}: ${why}`;
  const { rows } = await connection.query<{ id: string }>(sql.discardEffects, [ids, decision, reason]);
  if (rows.length > 0) {
    await connection.query(sql.advanceKeys, [numberArray(rows.map(({ id }) => id))]);
  }
  return rows.length;
}

async function committed(connection: DriverConnection, decision: string): Promise<string> {
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new InboxError("commit-refused", "The decision was rolled back.");
  return decision;
}

/** Rolls back and says why an entry could not be decided on. */
async function refusal(connection: DriverConnection, sql: Sql, id: string): Promise<InboxError> {
  const { rows } = await connection.query<{
    readonly status: string;
    readonly decided_by: string | null;
    readonly decided_at: Date | null;
  }>(sql.whyNotRefused, [id]);
  await connection.query("rollback");
  const row = rows[0];
  if (row === undefined) return missing(id);
  if (row.status === "open") {
    const text = `The effect of entry ${id} is not in the outbox any more.`;
    return new InboxError("entry-missing", text);
  }
  const when = row.decided_at?.toISOString() ?? "";
  const who = showValue(row.decided_by ?? "", 256);
  return new InboxError("already-decided", `Entry ${id} is ${row.status}: decided by ${who} at ${when}.`);
}

const missing = (id: string): InboxError =>
  new InboxError("entry-missing", `There is no refused effect ${showValue(id)}, or it was forgotten.`);

/** Records a decision on all entries that fit: one statement, which is all or nothing by itself. */
export async function decideOnEffects(
  connection: DriverConnection,
  sql: Sql,
  kind: "retry" | "discard",
  filter: RefusedFilter,
  decider: Decider,
  expected: number,
): Promise<BulkAnswer> {
  const open: RefusedFilter = { ...filter, status: "open" };
  const { rows } = await connection.query<{ matched: number; id: string | null }>(sql.recordOutboxDecision, [
    ...refusedValues(open),
    ...[kind, ...decidersValues(decider), safeJson(filter, 65_536), expected],
  ]);
  const { matched = 0, id = null } = rows[0] ?? {};
  return { matched, decision: id === null ? undefined : await findDecision(connection, sql, id) };
}

/**
 * One batch of a decision on many, in one transaction. Dying in it leaves the batch for whoever carries on; a batch
 * that is committed is gone from the list, so nothing is decided twice, and what is refused again is another entry.
 */
export async function carryOnEffects(
  connection: DriverConnection,
  sql: Sql,
  decisionId: string,
): Promise<BulkDecision | undefined> {
  if (!isRowId(decisionId)) return undefined;
  const known = await findDecision(connection, sql, decisionId);
  if (known === undefined || known.finishedAt !== undefined) return known;
  const { kind } = known;
  // Effects are neither purged nor applied late.
  if (kind !== "retry" && kind !== "discard") return known;
  void connection.query(begin);
  const { rows } = await connection.query<{ batch: number; entry_ids: string }>(sql.nextOutboxBatch, [
    decisionId,
  ]);
  const next = rows[0];
  if (next === undefined) {
    void connection.query(sql.finishOutboxDecision, [decisionId]);
  } else {
    const total = next.entry_ids.split(",").length;
    void connection.query(sql.lockEffectLanes, [next.entry_ids]);
    const locked = await connection.query<{ id: string }>(sql.lockRefusals, [next.entry_ids]);
    const ids = numberArray(locked.rows.map(({ id }) => id));
    const decided = await apply(connection, sql, kind, ids, decisionId, known);
    void connection.query(sql.finishOutboxBatch, [decisionId, next.batch, decided, total - decided]);
  }
  await committed(connection, decisionId);
  return findDecision(connection, sql, decisionId);
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

async function findDecision(
  connection: DriverConnection,
  sql: Sql,
  id: string,
): Promise<BulkDecision | undefined> {
  const { rows } = await connection.query<DecisionColumns>(sql.findOutboxDecision, [id]);
  return rows[0] === undefined ? undefined : toDecision(rows[0]);
}

/** Decisions on many that have batches left, oldest first. */
export async function unfinishedOnEffects(
  connection: DriverConnection,
  sql: Sql,
): Promise<readonly BulkDecision[]> {
  const { rows } = await connection.query<DecisionColumns>(sql.unfinishedOutboxDecisions);
  return rows.map(toDecision);
}

/** The last decisions, newest first. */
export async function decisionsOnEffects(
  connection: DriverConnection,
  sql: Sql,
  limit: number,
): Promise<readonly BulkDecision[]> {
  const { rows } = await connection.query<DecisionColumns>(sql.listOutboxDecisions, [
    Math.min(Math.max(limit, 1), 1_000),
  ]);
  return rows.map(toDecision);
}
