import type { FingerprintMode } from "../../message/fingerprint.ts";
import type { Protection } from "../protection.ts";
import type {
  EntryDecision,
  QuarantineEntry,
  QuarantineFilter,
  QuarantineGroup,
  QuarantineListOptions,
  QuarantineRow,
} from "../quarantine-entry.ts";
import type { StoredEntry } from "../quarantine-store.ts";
import { numberArray } from "./array.ts";
import type { DriverConnection } from "./driver.ts";
import { safeText } from "./safe-text.ts";
import type { PostgresSql } from "./sql/all.ts";

const maxBigint = 9_223_372_036_854_775_807n;

/** Whether a text can be a row's number. */
export const isRowId = (id: string): boolean => /^[0-9]{1,19}$/.test(id) && BigInt(id) <= maxBigint;

/** The parameters of `quarantineFits`. */
export function filterValues(filter: QuarantineFilter): readonly (string | null)[] {
  const status = filter.status ?? "open";
  const texts = [
    ...[filter.consumer, filter.code, filter.group, filter.tenant, filter.producer, filter.messageId],
    ...[filter.type, filter.key],
  ];
  return [
    // What PostgreSQL cannot hold matches nothing, which its replacement does not either.
    ...texts.map((text) => (text === undefined ? null : safeText(text, 16_384))),
    filter.since?.toISOString() ?? null,
    filter.until?.toISOString() ?? null,
    filter.text === undefined ? null : safeText(filter.text, 16_384),
    status === "all" ? null : status,
  ];
}

export async function listQuarantine(
  connection: DriverConnection,
  sql: PostgresSql,
  { after, limit, first, ...filter }: QuarantineListOptions,
): Promise<readonly QuarantineRow[]> {
  if (after !== undefined && !isRowId(after)) return [];
  const statement = first === "oldest" ? sql.listQuarantineOldest : sql.listQuarantine;
  const { rows } = await connection.query<RowColumns>(statement, [
    ...filterValues(filter),
    after ?? null,
    Math.min(Math.max(limit ?? 100, 1), 1_000),
  ]);
  return rows.map(toRow);
}

export async function quarantineHistory(
  connection: DriverConnection,
  sql: PostgresSql,
  digest: string,
): Promise<readonly QuarantineRow[]> {
  const { rows } = await connection.query<RowColumns>(sql.quarantineHistory, [digest]);
  return rows.map(toRow);
}

export async function groupQuarantine(
  connection: DriverConnection,
  sql: PostgresSql,
  filter: QuarantineFilter,
  limit: number,
): Promise<readonly QuarantineGroup[]> {
  const { rows } = await connection.query<GroupColumns>(sql.groupQuarantine, [
    ...filterValues(filter),
    Math.min(Math.max(limit, 1), 10_000),
  ]);
  return rows.map((row) => ({
    ...{ consumer: row.consumer, code: row.code, group: row.error_group, error: row.error },
    ...{ count: row.entries, firstFailedAt: row.first_failed_at, lastFailedAt: row.last_failed_at },
    sample: row.sample,
  }));
}

export async function countQuarantine(
  connection: DriverConnection,
  sql: PostgresSql,
  filter: QuarantineFilter,
): Promise<number> {
  const { rows } = await connection.query<{ entries: number }>(sql.countQuarantine, filterValues(filter));
  return rows[0]?.entries ?? 0;
}

/** Entries as they lie in the table. */
export async function storedQuarantine(
  connection: DriverConnection,
  sql: PostgresSql,
  ids: readonly string[],
): Promise<readonly (StoredEntry & { readonly repairDigest: string | null })[]> {
  const numbers = ids.filter(isRowId);
  if (numbers.length === 0) return [];
  const { rows } = await connection.query<EntryColumns>(sql.showQuarantine, [numberArray(numbers)]);
  return rows.map(toStored);
}

function toStored(row: EntryColumns): StoredEntry & { readonly repairDigest: string | null } {
  return {
    ...toRow(row),
    digest: row.digest ?? undefined,
    rawIdentity: row.raw_identity ?? undefined,
    time: row.message_time === null ? undefined : new Date(row.message_time),
    fingerprint: row.fingerprint,
    fingerprintMode: row.fingerprint_mode,
    keyId: row.payload_key_id ?? undefined,
    stored: { payload: bytesOf(row.payload_hex), headers: row.headers, keyId: row.payload_key_id },
    repairDigest: row.repair_digest,
    repair: row.repaired
      ? {
          tenant: row.repair_tenant ?? "",
          producer: row.repair_producer ?? "",
          messageId: row.repair_message_id ?? "",
          payload: bytesOf(row.repair_payload_hex),
          keyId: row.repair_key_id ?? undefined,
          fingerprint: row.repair_fingerprint ?? "",
        }
      : undefined,
  };
}

/** An entry with its bodies open. */
export async function openEntry(
  protection: Protection,
  entry: StoredEntry & { readonly repairDigest: string | null },
): Promise<QuarantineEntry> {
  const { stored, digest, repairDigest, repair, ...rest } = entry;
  const { consumer } = rest;
  const body = await protection.open({ consumer, digest }, stored);
  if (repair === undefined) return { ...rest, ...body, repair };
  // A repair's headers are the entry's: only its payload is kept.
  const payload = await protection.openPayload({ consumer, digest: repairDigest ?? undefined }, repair);
  return { ...rest, ...body, repair: { ...repair, payload } };
}

const bytesOf = (hex: string | null): Uint8Array | null => (hex === null ? null : Buffer.from(hex, "hex"));

interface RowColumns {
  readonly id: string;
  readonly status: QuarantineRow["status"];
  readonly consumer: string;
  readonly tenant: string | null;
  readonly producer: string | null;
  readonly message_id: string | null;
  readonly message_key: string | null;
  readonly message_type: string | null;
  readonly code: string;
  readonly error: string;
  readonly error_group: string;
  readonly attempts: number;
  readonly deliveries: number;
  readonly payload_bytes: number;
  readonly first_failed_at: Date;
  readonly last_failed_at: Date;
  readonly handler_version: string;
  readonly again_of: string | null;
  readonly decision_id: string | null;
  readonly decision_kind: EntryDecision["kind"] | null;
  readonly decided_by: string | null;
  readonly reason: string | null;
  readonly decided_at: Date | null;
}

interface EntryColumns extends RowColumns {
  readonly digest: string | null;
  readonly raw_identity: string | null;
  readonly message_time: string | null;
  readonly headers: string;
  readonly payload_hex: string | null;
  readonly payload_key_id: string | null;
  readonly fingerprint: string;
  readonly fingerprint_mode: FingerprintMode;
  readonly repaired: boolean;
  readonly repair_digest: string | null;
  readonly repair_tenant: string | null;
  readonly repair_producer: string | null;
  readonly repair_message_id: string | null;
  readonly repair_payload_hex: string | null;
  readonly repair_key_id: string | null;
  readonly repair_fingerprint: string | null;
}

interface GroupColumns {
  readonly consumer: string;
  readonly code: string;
  readonly error_group: string;
  readonly error: string;
  readonly entries: number;
  readonly first_failed_at: Date;
  readonly last_failed_at: Date;
  readonly sample: string;
}

const toRow = (row: RowColumns): QuarantineRow => ({
  id: row.id,
  status: row.status,
  consumer: row.consumer,
  tenant: row.tenant ?? undefined,
  producer: row.producer ?? undefined,
  messageId: row.message_id ?? undefined,
  key: row.message_key ?? undefined,
  type: row.message_type ?? undefined,
  code: row.code,
  error: row.error,
  group: row.error_group,
  attempts: row.attempts,
  deliveries: row.deliveries,
  payloadBytes: row.payload_bytes,
  firstFailedAt: row.first_failed_at,
  lastFailedAt: row.last_failed_at,
  handlerVersion: row.handler_version,
  againOf: row.again_of ?? undefined,
  decision: decisionOf(row),
});

const decisionOf = (row: RowColumns): EntryDecision | undefined =>
  row.decision_id === null || row.decision_kind === null || row.decided_at === null
    ? undefined
    : {
        id: row.decision_id,
        kind: row.decision_kind,
        by: row.decided_by ?? "",
        why: row.reason ?? "",
        at: row.decided_at,
      };
