import { InboxError } from "../../errors.ts";
import type { LogAsk, LogPosition, LogStore, TakenCursor, TakenLog } from "../log.ts";
import type { DriverConnection } from "./driver.ts";
import type { PostgresSql } from "./sql/all.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

interface CursorRow {
  readonly cluster: string | null;
  readonly incarnation: string | null;
  readonly applied: string | null;
  readonly ends_at: string | null;
}

interface Cursor {
  readonly cluster: string | undefined;
  readonly incarnation: string;
  readonly applied: bigint | undefined;
}

type Refused = Exclude<TakenCursor, { readonly kind: "taken" }>;

const begin = "begin isolation level read committed";

/** Owners of logs and their cursors in PostgreSQL. */
export function logStore(sql: PostgresSql, withConnection: WithConnection): LogStore {
  async function take(connection: DriverConnection, consumer: string, log: string): Promise<TakenLog> {
    const { rows } = await connection.query<TakenLog>(sql.raiseLog, [consumer, log]);
    if (rows[0] === undefined) throw new InboxError("store-unavailable", `The log ${log} was not taken.`);
    await connection.query(sql.ownLog, [consumer, log, rows[0].epoch]);
    return rows[0];
  }

  /** What is known of the log, under its owner's lock. */
  async function lock(
    connection: DriverConnection,
    consumer: string,
    { log, epoch }: LogPosition,
  ): Promise<CursorRow> {
    const { rows } = await connection.query<CursorRow>(sql.lockCursor, [consumer, log, epoch]);
    if (rows[0] === undefined) throw new InboxError("log-lost", `Another process reads ${log} now.`);
    return rows[0];
  }

  return {
    take: (consumer, log) => withConnection((connection) => take(connection, consumer, log)),

    takeCursor: (consumer, log, ask) =>
      withConnection(async (connection) => {
        // Before the old owner is put out of its right: who reads another log under this name must not stop it.
        const { rows } = await connection.query<CursorRow>(sql.readCursor, [consumer, log]);
        const first = decide(rows[0], ask);
        if ("kind" in first) return first;
        const { epoch } = await take(connection, consumer, log);
        void connection.query(begin);
        const cursor = decide(await lock(connection, consumer, { log, epoch }), ask);
        if ("kind" in cursor) {
          await connection.query("rollback");
          return cursor;
        }
        const { cluster, incarnation, applied } = cursor;
        void connection.query(sql.writeCursor, [
          ...[consumer, log, epoch, cluster ?? null, incarnation],
          ...[textOf(applied), null],
        ]);
        await commit(connection);
        return { kind: "taken", epoch, incarnation, applied };
      }),

    markEnd: (consumer, position, part, end) =>
      withConnection(async (connection) => {
        void connection.query(begin);
        const { cluster, incarnation, applied, ends_at } = await lock(connection, consumer, position);
        if (ends_at === null && (applied === null || BigInt(applied) < end)) {
          await connection.query("rollback");
          return { accept: undefined };
        }
        const lowest = ends_at === null || BigInt(ends_at) > end ? end : BigInt(ends_at);
        void connection.query(sql.writeCursor, [
          ...[consumer, position.log, position.epoch, cluster, incarnation, applied, String(lowest)],
        ]);
        await commit(connection);
        return { accept: nameOfEnd(incarnation ?? "", part, lowest) };
      }),
  };
}

async function commit(connection: DriverConnection): Promise<void> {
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new InboxError("commit-refused", "The log's cursor was not written.");
}

const textOf = (offset: bigint | undefined): string | null => (offset === undefined ? null : String(offset));

const nameOfEnd = (incarnation: string, part: string, end: bigint): string => `${incarnation}/${part}@${end}`;

/**
 * Where the cursor of the log stands that is asked for; or why a person must say so first. What was agreed to becomes part of
 * the incarnation's name, so that an agreement holds once, and an offset that is used again names another record.
 */
function decide(row: CursorRow | undefined, ask: LogAsk): Cursor | Refused {
  const { cluster, incarnation, begin: from } = ask;
  if (row === undefined || row.incarnation === null)
    return { cluster, incarnation, applied: from === undefined ? undefined : from - 1n };
  const applied = row.applied === null ? undefined : BigInt(row.applied);
  const sameLog = row.incarnation === incarnation || row.incarnation.startsWith(`${incarnation}@`);
  const sameCluster = row.cluster === null || cluster === undefined || row.cluster === cluster;
  if (!sameLog || !sameCluster) {
    // A cluster that was copied has the topic's id too, and its records come under other names.
    const name = sameLog ? `${incarnation}@${cluster}` : incarnation;
    if (!ask.accept.includes(name)) return { kind: "changed", known: row.incarnation, applied, accept: name };
    // All of it is new: what the group has committed may be of the log before.
    return { cluster, incarnation: name, applied: -1n };
  }
  const known = { cluster: cluster ?? row.cluster ?? undefined, incarnation: row.incarnation, applied };
  if (row.ends_at === null) return known;
  const end = BigInt(row.ends_at);
  const accept = nameOfEnd(row.incarnation, ask.part, end);
  if (!ask.accept.includes(accept)) return { kind: "ended", end, applied, accept };
  return { ...known, incarnation: `${row.incarnation}@${end}`, applied: end - 1n };
}
