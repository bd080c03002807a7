import { InboxError } from "../../errors.ts";
import type {
  QuarantineEntry,
  QuarantineFilter,
  QuarantineInsert,
  QuarantineRow,
} from "../quarantine-entry.ts";
import type { ConsumerName, QuarantineOutcome } from "../store.ts";
import type { DriverConnection } from "./driver.ts";
import { holdStatement, wasHeld, type HoldRow } from "./hold.ts";
import { safeJson, safeText } from "./safe-text.ts";
import type { PostgresSql } from "./sql/all.ts";

const errorLimit = 16_384;
const labelLimit = 1_024;
const jsonLimit = 262_144;

/**
 * Writes an entry in a transaction of its own. This is the statement that must work when nothing else does: all it
 * sends but the payload is text made safe beforehand. Dying before the commit leaves the message unacknowledged.
 */
export async function insertQuarantine(
  connection: DriverConnection,
  sql: PostgresSql,
  name: ConsumerName,
  entry: QuarantineInsert,
): Promise<QuarantineOutcome> {
  const { identity, fingerprint } = entry;
  const digest = identity?.digest ?? null;
  void connection.query("begin");
  if (entry.pending !== undefined && digest !== null) {
    const held = holdStatement(sql.hold, name.consumer, 1_000, [{ digest, lease: entry.pending.lease }]);
    if (!wasHeld(await connection.query<HoldRow>(held.text, held.values))) {
      await connection.query("rollback");
      return "gone";
    }
    void connection.query(sql.removePending, [digest]);
  }
  if (identity) {
    void connection.query(sql.reserveIdentity, [
      digest,
      name.consumer,
      identity.tenant,
      identity.producer,
      identity.id,
      fingerprint.digest,
      fingerprint.mode,
      name.handlerVersion,
    ]);
  }
  const inserted = await connection.query(sql.insertQuarantine, [
    name.consumer,
    digest,
    identity?.tenant ?? null,
    identity?.producer ?? null,
    identity?.id ?? null,
    identity ? null : safeJson(entry.rawIdentity, jsonLimit),
    entry.key === undefined ? null : safeText(entry.key, labelLimit),
    entry.type === undefined ? null : safeText(entry.type, labelLimit),
    safeJson(entry.headers, jsonLimit),
    entry.payload,
    fingerprint.digest,
    fingerprint.mode,
    entry.code,
    safeText(entry.error, errorLimit),
    entry.attempts,
    name.handlerVersion,
    entry.pending?.position ?? null,
    entry.time === undefined || Number.isNaN(entry.time.getTime()) ? null : entry.time.toISOString(),
    entry.blocking ?? false,
  ]);
  if (entry.blocking === true && entry.key !== undefined && digest !== null && inserted.rows.length > 0) {
    void connection.query(sql.parkForDecision, [name.consumer, entry.key, digest]);
  }
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new InboxError("commit-refused", "The quarantine entry was rolled back.");
  return inserted.rows.length === 0 ? "already-applied" : "stored";
}

export async function listQuarantine(
  connection: DriverConnection,
  sql: PostgresSql,
  filter: QuarantineFilter,
): Promise<readonly QuarantineRow[]> {
  const status = filter.status ?? "open";
  const { rows } = await connection.query<RowColumns>(sql.listQuarantine, [
    filter.consumer ?? null,
    filter.code ?? null,
    status === "all" ? null : status,
    filter.after ?? null,
    Math.min(Math.max(filter.limit ?? 100, 1), 1_000),
  ]);
  return rows.map(toRow);
}

export async function showQuarantine(
  connection: DriverConnection,
  sql: PostgresSql,
  id: string,
): Promise<QuarantineEntry | undefined> {
  if (!/^[0-9]{1,19}$/.test(id) || BigInt(id) > 9_223_372_036_854_775_807n) return undefined;
  const { rows } = await connection.query<EntryColumns>(sql.showQuarantine, [id]);
  const row = rows[0];
  if (row === undefined) return undefined;
  return {
    ...toRow(row),
    rawIdentity: row.raw_identity ?? undefined,
    key: row.message_key ?? undefined,
    type: row.message_type ?? undefined,
    headers: JSON.parse(row.headers) as Record<string, string>,
    payload: row.payload_hex === null ? null : Buffer.from(row.payload_hex, "hex"),
    fingerprint: row.fingerprint,
    fingerprintMode: row.fingerprint_mode,
  };
}

interface RowColumns {
  readonly id: string;
  readonly status: QuarantineRow["status"];
  readonly consumer: string;
  readonly tenant: string | null;
  readonly producer: string | null;
  readonly message_id: string | null;
  readonly code: string;
  readonly error: string;
  readonly attempts: number;
  readonly deliveries: number;
  readonly payload_bytes: number;
  readonly first_failed_at: Date;
  readonly last_failed_at: Date;
  readonly handler_version: string;
}

interface EntryColumns extends RowColumns {
  readonly raw_identity: string | null;
  readonly message_key: string | null;
  readonly message_type: string | null;
  readonly headers: string;
  readonly payload_hex: string | null;
  readonly fingerprint: string;
  readonly fingerprint_mode: string;
}

const toRow = (row: RowColumns): QuarantineRow => ({
  id: row.id,
  status: row.status,
  consumer: row.consumer,
  tenant: row.tenant ?? undefined,
  producer: row.producer ?? undefined,
  messageId: row.message_id ?? undefined,
  code: row.code,
  error: row.error,
  attempts: row.attempts,
  deliveries: row.deliveries,
  payloadBytes: row.payload_bytes,
  firstFailedAt: row.first_failed_at,
  lastFailedAt: row.last_failed_at,
  handlerVersion: row.handler_version,
});
