import { InboxError } from "../../errors.ts";
import { errorShape } from "../error-shape.ts";
import { openLength, type Protection, type StoredBody } from "../protection.ts";
import type { ImportedEntry, ImportOutcome, QuarantineStore } from "../quarantine-store.ts";
import { numberArray } from "./array.ts";
import { listDecisions, unfinishedDecisions } from "./decisions.ts";
import type { DriverConnection } from "./driver.ts";
import { carryOn, decideMany, decideOne, repairEntry } from "./quarantine-decide.ts";
import {
  countQuarantine,
  groupQuarantine,
  isRowId,
  listQuarantine,
  openEntry,
  quarantineHistory,
  storedQuarantine,
} from "./quarantine-read.ts";
import { safeJson, safeText } from "./safe-text.ts";
import type { PostgresSql } from "./sql/all.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

/** Quarantine in PostgreSQL. Every method is a transaction of its own. */
export function quarantineStore(
  sql: PostgresSql,
  protection: Protection,
  withConnection: WithConnection,
): QuarantineStore {
  const storedAll = (ids: readonly string[]) =>
    withConnection((connection) => storedQuarantine(connection, sql, ids));
  const stored = async (id: string) => (await storedAll([id]))[0];
  return {
    list: (options) => withConnection((connection) => listQuarantine(connection, sql, options)),
    async show(id) {
      const entry = await stored(id);
      return entry === undefined ? undefined : openEntry(protection, entry);
    },
    async stored(id) {
      const entry = await stored(id);
      if (entry === undefined) return undefined;
      const { repairDigest: _, ...rest } = entry;
      return rest;
    },
    marks: (ids) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<MarkRow>(sql.entryMarks, [numberArray(ids.filter(isRowId))]);
        return rows.map((row) => ({
          ...{ id: row.id, consumer: row.consumer, digest: row.digest ?? undefined },
          ...{ fingerprint: row.fingerprint, firstFailedAt: row.first_failed_at },
        }));
      }),
    storedAll: async (ids) => (await storedAll(ids)).map(({ repairDigest: _, ...rest }) => rest),
    groups: (filter, limit) =>
      withConnection((connection) => groupQuarantine(connection, sql, filter, limit)),
    count: (filter) => withConnection((connection) => countQuarantine(connection, sql, filter)),
    history: (digest) => withConnection((connection) => quarantineHistory(connection, sql, digest)),

    decide: (kind, id, decider) =>
      withConnection((connection) => decideOne(connection, sql, kind, id, decider)),
    async repair(id, request, decider) {
      const entry = await stored(id);
      if (entry === undefined) {
        return new InboxError(
          "entry-missing",
          `There is no entry ${JSON.stringify(id)} in quarantine, or it was purged.`,
        );
      }
      return withConnection((connection) =>
        repairEntry(connection, sql, protection, entry, id, request, decider),
      );
    },
    decideMany: (kind, filter, decider, expected) =>
      withConnection((connection) => decideMany(connection, sql, kind, filter, decider, expected)),
    carryOn: (decisionId) => withConnection((connection) => carryOn(connection, sql, decisionId)),
    unfinished: () => withConnection((connection) => unfinishedDecisions(connection, sql.decisions)),
    decisions: (limit) => withConnection((connection) => listDecisions(connection, sql.decisions, limit)),

    purge: (decidedBeforeMs, consumer, decisionId) =>
      withConnection(async (connection) => {
        const values = [String(decidedBeforeMs), consumer ?? null, decisionId ?? null];
        const { rows } = await connection.query<{ entries: number }>(sql.purgeQuarantine, values);
        return rows[0]?.entries ?? 0;
      }),
    countPurgeable: (decidedBeforeMs, consumer) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ entries: number }>(sql.countPurgeable, [
          String(decidedBeforeMs),
          consumer ?? null,
        ]);
        return rows[0]?.entries ?? 0;
      }),
    recordPurge: ({ by, why }, filter, matched) =>
      withConnection(async (connection) => {
        const values = [safeText(by, 256), safeText(why, 4_096), filter, matched];
        const { rows } = await connection.query<{ id: string }>(sql.recordPurge, values);
        return rows[0]?.id ?? "";
      }),
    import: async (entry) => (await importAll([entry]))[0] ?? "known",
    importAll,
  };

  async function importAll(entries: readonly ImportedEntry[]): Promise<readonly ImportOutcome[]> {
    // Sealed before the transaction is open: a key service may take its time.
    const bodies = await Promise.all(
      entries.map(async (entry) => {
        const owner = { consumer: entry.consumer, digest: entry.identity?.digest };
        return (
          entry.sealed ?? protection.seal(owner, entry, safeJson(entry.headers, Number.POSITIVE_INFINITY))
        );
      }),
    );
    return withConnection(async (connection) => {
      const outcomes: ImportOutcome[] = [];
      void connection.query("begin isolation level read committed");
      for (const [index, entry] of entries.entries()) {
        outcomes.push(await importEntry(connection, sql, entry, bodies[index]!));
      }
      const { command } = await connection.query("commit");
      if (command !== "COMMIT") throw new InboxError("commit-refused", "The import was rolled back.");
      return outcomes;
    });
  }
}

/** Dying before the commit imports nothing; the same entry may be imported again and again. */
async function importEntry(
  connection: DriverConnection,
  sql: PostgresSql,
  entry: ImportedEntry,
  body: StoredBody,
): Promise<ImportOutcome> {
  if (!isRowId(String(entry.attempts)) || !isRowId(String(entry.deliveries))) return "known";
  const { identity, fingerprint } = entry;
  const digest = identity?.digest ?? null;
  // What was cut when it came to quarantine is not cut again.
  const error = safeText(entry.error, 65_536);
  const { shape, group } = errorShape(entry.code, error);
  if (identity !== undefined) {
    void connection.query(sql.reserveIdentity, [
      ...[digest, entry.consumer, identity.tenant, identity.producer, identity.id],
      ...[fingerprint.digest, fingerprint.mode, entry.handlerVersion],
    ]);
    const { rows } = await connection.query<IdentityRow>(sql.findIdentity, [digest]);
    const met = rows[0];
    // Then the row was there, and nothing was reserved.
    if (
      met?.processed === true &&
      met.fingerprint === fingerprint.digest &&
      met.fingerprint_mode === fingerprint.mode
    ) {
      return "applied";
    }
  }
  const inserted = await connection.query(sql.importEntry, [
    ...[entry.consumer, digest, identity?.tenant ?? null, identity?.producer ?? null, identity?.id ?? null],
    ...[entry.rawIdentityText ?? null, entry.key ?? null, entry.type ?? null],
    ...[entry.time?.toISOString() ?? null, body.headers, body.payload, body.keyId],
    ...[fingerprint.digest, fingerprint.mode, entry.code, error, group, shape],
    openLength(body.payload, body.keyId),
    ...[entry.attempts, entry.deliveries],
    ...[entry.firstFailedAt.toISOString(), entry.lastFailedAt.toISOString()],
    ...[entry.handlerVersion, entry.importKey],
  ]);
  return inserted.rows.length === 0 ? "known" : "imported";
}

interface MarkRow {
  readonly id: string;
  readonly consumer: string;
  readonly digest: string | null;
  readonly fingerprint: string;
  readonly first_failed_at: Date;
}

interface IdentityRow {
  readonly processed: boolean;
  readonly fingerprint: string;
  readonly fingerprint_mode: string;
}
