import { InboxError } from "../../errors.ts";
import { showValue } from "../../message/show-value.ts";
import type { EffectRepair, RefusedFilter } from "../outbox-operator.ts";
import type { Protection, StoredBody } from "../protection.ts";
import type { BulkAnswer, BulkDecision, Decider } from "../quarantine-store.ts";
import { numberArray } from "./array.ts";
import { begin, carryOnDecision, commit, decidersValues, findDecision, insertDecision } from "./decisions.ts";
import type { DriverConnection } from "./driver.ts";
import { refusedValues, showRefused } from "./outbox-read.ts";
import { bodyOwner } from "./outbox-send.ts";
import { isRowId } from "./quarantine-read.ts";
import { safeJson } from "./safe-text.ts";
import type { OutboxOperatorSql } from "./sql/outbox-operator.ts";

type Sql = OutboxOperatorSql;

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
  return insertDecision(connection, sql.decisions, kind, id, decider);
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
  await commit(connection);
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
  const { rows } = await connection.query<{ matched: number; id: string | null }>(sql.decisions.record, [
    ...refusedValues(open),
    ...[kind, ...decidersValues(decider), safeJson(filter, 65_536), expected],
  ]);
  const { matched = 0, id = null } = rows[0] ?? {};
  return { matched, decision: id === null ? undefined : await findDecision(connection, sql.decisions, id) };
}

/** The next batch of a decision on many. Effects are neither purged nor applied late. */
export const carryOnEffects = (
  connection: DriverConnection,
  sql: Sql,
  decisionId: string,
): Promise<BulkDecision | undefined> =>
  carryOnDecision(connection, sql.decisions, decisionId, async (decision, entryIds) => {
    void connection.query(sql.lockEffectLanes, [entryIds]);
    const locked = await connection.query<{ id: string }>(sql.lockRefusals, [entryIds]);
    const ids = numberArray(locked.rows.map(({ id }) => id));
    return apply(connection, sql, decision.kind as "retry" | "discard", ids, decisionId, decision);
  });
