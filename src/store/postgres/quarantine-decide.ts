import { InboxError } from "../../errors.ts";
import { showValue } from "../../message/show-value.ts";
import type { BodyOwner, Protection } from "../protection.ts";
import type { QuarantineFilter } from "../quarantine-entry.ts";
import type {
  BulkAnswer,
  BulkDecision,
  Decider,
  DecisionOnEntries,
  RepairRequest,
} from "../quarantine-store.ts";
import { numberArray } from "./array.ts";
import { begin, carryOnDecision, commit, decidersValues, findDecision, insertDecision } from "./decisions.ts";
import type { DriverConnection } from "./driver.ts";
import { filterValues, isRowId } from "./quarantine-read.ts";
import { safeJson } from "./safe-text.ts";
import type { PostgresSql } from "./sql/all.ts";

async function rollback(connection: DriverConnection, error: InboxError): Promise<InboxError> {
  await connection.query("rollback");
  return error;
}

interface WhyNotRow {
  readonly status: string;
  readonly decided_by: string | null;
  readonly kind: string | null;
  readonly decided_at: Date | null;
  readonly named: boolean;
  readonly code: string;
  readonly message_id: string | null;
  readonly processed_at: Date | null;
  readonly kept: boolean;
  readonly pending: boolean;
}

/** Why an entry cannot be decided on as asked; `undefined` if nothing is in the way. `digest`: of a repair's identity. */
async function whyNot(
  connection: DriverConnection,
  sql: PostgresSql,
  id: string,
  kind: DecisionOnEntries | "repair",
  digest: string | null = null,
): Promise<InboxError | undefined> {
  const { rows } = await connection.query<WhyNotRow>(sql.whyNot, [id, digest]);
  const row = rows[0];
  if (row === undefined) return missing(id);
  if (row.status !== "open") {
    const when = row.decided_at?.toISOString() ?? "";
    const who = showValue(row.decided_by ?? "", 256);
    const text = `Entry ${id} is ${row.status}: decided by ${who} at ${when}.`;
    return new InboxError("already-decided", text);
  }
  if (kind === "discard") return undefined;
  if (kind === "retry" && row.code === "late") {
    const text =
      `Entry ${id} is late: it may have been applied and forgotten, so it is not simply retried. ` +
      `Find out whether it was, then apply it (inbox quarantine apply ${id}) or discard it.`;
    return new InboxError("decision-needs", text);
  }
  if (kind === "apply" && row.code !== "late") {
    return new InboxError(
      "decision-needs",
      `Entry ${id} is not late, so there is nothing to apply: retry it.`,
    );
  }
  if (!row.named && digest === null) {
    const text = `Entry ${id} has no identity, so it cannot be retried. Repair it by giving it one, or discard it.`;
    return new InboxError("decision-needs", text);
  }
  if (row.processed_at !== null) {
    const text =
      `The identity of entry ${id} is applied since ${row.processed_at.toISOString()}. ` +
      "Discard the entry, or repair it under an id of its own.";
    return new InboxError("already-applied", text);
  }
  if (row.pending) {
    const text = `Another body of the identity of entry ${id} waits to be handled. See what becomes of it first.`;
    return new InboxError("already-pending", text);
  }
  return undefined;
}

const missing = (id: string): InboxError =>
  new InboxError("entry-missing", `There is no entry ${showValue(id)} in quarantine, or it was purged.`);

/** Decides on one entry in one transaction. Dying before its commit decides nothing. */
export async function decideOne(
  connection: DriverConnection,
  sql: PostgresSql,
  kind: DecisionOnEntries,
  id: string,
  decider: Decider,
): Promise<string | InboxError> {
  if (!isRowId(id)) return missing(id);
  void connection.query(begin);
  void connection.query(sql.lockEntries, [numberArray([id])]);
  if (kind !== "discard") void connection.query(sql.lockIdentities, [numberArray([id])]);
  const decision = await insertDecision(connection, sql.decisions, kind, id, decider);
  const decided = await apply(connection, sql, kind, numberArray([id]), decision);
  if (decided === 0) {
    return rollback(connection, (await whyNot(connection, sql, id, kind)) ?? missing(id));
  }
  await commit(connection);
  return decision;
}

/** Applies a decision to locked entries and resolves with how many it reached. */
async function apply(
  connection: DriverConnection,
  sql: PostgresSql,
  kind: DecisionOnEntries,
  ids: string,
  decision: string,
): Promise<number> {
  const { rows } =
    kind === "discard"
      ? await connection.query<{ id: string }>(sql.discardEntries, [ids, decision])
      : await connection.query<{ id: string }>(sql.retryEntries, [ids, decision, kind === "apply"]);
  if (kind === "discard" && rows.length > 0) {
    await connection.query(sql.releaseKeys, [numberArray(rows.map(({ id }) => id))]);
  }
  return rows.length;
}

/** `decideOne` with another body, or under another identity. The owner is the entry's. */
export async function repairEntry(
  connection: DriverConnection,
  sql: PostgresSql,
  protection: Protection,
  { consumer, digest: own }: BodyOwner,
  id: string,
  request: RepairRequest,
  decider: Decider,
): Promise<string | InboxError> {
  const { identity, digest, fingerprint, headers, payload } = request;
  const body = await protection.seal(
    { consumer, digest },
    { headers, payload },
    safeJson(headers, Number.POSITIVE_INFINITY),
  );
  void connection.query(begin);
  void connection.query(sql.lockEntries, [numberArray([id])]);
  // A new identity is taken as a claim takes it; one that is there is locked until this transaction ends.
  const reserved = connection.query(sql.reserveIdentity, [
    ...[digest, consumer, identity.tenant, identity.producer, identity.id],
    ...[fingerprint.digest, fingerprint.mode, ""],
  ]);
  void connection.query(sql.lockIdentity, [digest]);
  const refused = await whyNot(connection, sql, id, "repair", digest);
  if (refused !== undefined) return rollback(connection, refused);
  if (digest !== own && (await reserved).rowCount === 0) {
    const text =
      "That identity is another message's, which waits for a decision. Repair under an id of its own.";
    return rollback(connection, new InboxError("already-pending", text));
  }
  const decision = await insertDecision(connection, sql.decisions, "repair", id, decider);
  const inserted = await connection.query(sql.insertRepaired, [
    ...[id, digest, identity.tenant, identity.producer, identity.id],
    ...[request.key ?? null, request.type ?? null],
    ...[body.headers, body.payload, body.keyId, fingerprint.digest, fingerprint.mode],
  ]);
  if (inserted.rows.length === 0) {
    const text = "Another body of this identity waits to be handled. See what becomes of it first.";
    return rollback(connection, new InboxError("already-pending", text));
  }
  void connection.query(sql.insertRepair, [
    ...[id, digest, identity.tenant, identity.producer, identity.id],
    ...[body.payload, body.keyId, fingerprint.digest, fingerprint.mode],
  ]);
  void connection.query(sql.markRepaired, [id, decision]);
  void connection.query(sql.releaseKeys, [numberArray([id])]);
  await commit(connection);
  return decision;
}

/** Records a decision on all entries that fit: one statement, which is all or nothing by itself. */
export async function decideMany(
  connection: DriverConnection,
  sql: PostgresSql,
  kind: DecisionOnEntries,
  filter: QuarantineFilter,
  decider: Decider,
  expected: number,
): Promise<BulkAnswer> {
  const open: QuarantineFilter = { ...filter, status: "open" };
  const { rows } = await connection.query<{ matched: number; id: string | null }>(sql.decisions.record, [
    ...filterValues(open),
    ...[kind, ...decidersValues(decider), safeJson(filter, 65_536), expected],
  ]);
  const { matched = 0, id = null } = rows[0] ?? {};
  return {
    matched,
    decision: id === null ? undefined : await findDecision(connection, sql.decisions, id),
  };
}

/** The next batch of a decision on many. */
export const carryOn = (
  connection: DriverConnection,
  sql: PostgresSql,
  decisionId: string,
): Promise<BulkDecision | undefined> =>
  carryOnDecision(connection, sql.decisions, decisionId, async ({ kind }, entryIds) => {
    const locked = await connection.query<{ id: string }>(sql.lockEntries, [entryIds]);
    const ids = numberArray(locked.rows.map(({ id }) => id));
    if (kind !== "discard") void connection.query(sql.lockIdentities, [ids]);
    return apply(connection, sql, kind as DecisionOnEntries, ids, decisionId);
  });
