import { InboxError } from "../../errors.ts";
import { errorShape } from "../error-shape.ts";
import type { Protection } from "../protection.ts";
import type { QuarantineInsert } from "../quarantine-entry.ts";
import type { ConsumerName, QuarantineOutcome } from "../store.ts";
import type { DriverConnection } from "./driver.ts";
import { passRecord, wasPassed } from "./follow.ts";
import { holdStatement, wasHeld, type HoldRow } from "./hold.ts";
import { reserve } from "./reserve.ts";
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
  protection: Protection,
  name: ConsumerName,
  entry: QuarantineInsert,
): Promise<QuarantineOutcome> {
  const { identity, fingerprint } = entry;
  const digest = identity?.digest ?? null;
  const error = safeText(entry.error, errorLimit);
  // Sealed first: without a key nothing is stored, and no transaction waits for one.
  const body = await protection.seal(
    { consumer: name.consumer, digest: identity?.digest },
    { headers: entry.headers, payload: entry.payload },
    safeJson(entry.headers, Number.POSITIVE_INFINITY),
  );
  // Whatever the server's default is: what is read after a lock must be what is committed by then.
  void connection.query("begin isolation level read committed");
  if (entry.pending !== undefined && digest !== null) {
    const held = holdStatement(sql.hold, name.consumer, 1_000, [{ digest, lease: entry.pending.lease }]);
    if (!wasHeld(await connection.query<HoldRow>(held.text, held.values))) {
      await connection.query("rollback");
      return "gone";
    }
    void connection.query(sql.removePending, [digest]);
  }
  if (entry.position !== undefined) {
    if (await wasPassed(connection, sql, name.consumer, entry.position)) {
      await connection.query("rollback");
      return "already-applied";
    }
    passRecord(connection, sql, name.consumer, entry.position);
  }
  // A record's place tells that it is new, however old it is.
  const sentAt = entry.position === undefined ? identity?.sentAt : undefined;
  const reserved = identity && (await reserve(connection, sql, name, { ...identity, fingerprint, sentAt }));
  // Then it may have been applied and forgotten, whatever it failed with: nobody shall retry it as if it were new.
  const late = reserved === "late" && entry.code !== "payload-conflict";
  const code = late ? "late" : entry.code;
  const blocking = entry.blocking === true && !late;
  const { shape, group } = errorShape(code, error);
  const inserted = await connection.query(sql.insertQuarantine, [
    name.consumer,
    digest,
    identity?.tenant ?? null,
    identity?.producer ?? null,
    identity?.id ?? null,
    identity ? null : safeJson(entry.rawIdentity, jsonLimit),
    entry.key === undefined ? null : safeText(entry.key, labelLimit),
    entry.type === undefined ? null : safeText(entry.type, labelLimit),
    body.headers,
    body.payload,
    fingerprint.digest,
    fingerprint.mode,
    code,
    error,
    entry.attempts,
    name.handlerVersion,
    entry.pending?.position ?? null,
    entry.time === undefined || Number.isNaN(entry.time.getTime()) ? null : entry.time.toISOString(),
    blocking,
    group,
    shape,
    entry.payload?.byteLength ?? 0,
    body.keyId,
  ]);
  if (blocking && entry.key !== undefined && digest !== null && inserted.rows.length > 0) {
    void connection.query(sql.parkForDecision, [name.consumer, entry.key, digest]);
  }
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new InboxError("commit-refused", "The quarantine entry was rolled back.");
  return inserted.rows.length === 0 ? "already-applied" : late ? "late" : "stored";
}
