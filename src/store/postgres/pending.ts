import { InboxError } from "../../errors.ts";
import type { Lease, PendingStore, PutOff, PutOffAnswer, Taken } from "../pending.ts";
import type { Protection } from "../protection.ts";
import type { ConsumerName } from "../store.ts";
import { numberArray, timeArray } from "./array.ts";
import type { Driver, DriverConnection } from "./driver.ts";
import { channelOf, keepListening } from "./hints.ts";
import { passRecord, wasPassed } from "./follow.ts";
import { acceptRecords } from "./accept-records.ts";
import { holdStatement, wasHeld, type HoldRow } from "./hold.ts";
import { reserve } from "./reserve.ts";
import { safeText } from "./safe-text.ts";
import { notNewFrom, type ClaimRow } from "./sql/claim.ts";
import type { PostgresSql } from "./sql/all.ts";
import { pendingMessage, storedParameters, type TakenRow } from "./stored-messages.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

const errorLimit = 16_384;

// Whatever the server's default is: what is read after a lock must be what is committed by then.
const begin = "begin isolation level read committed";

/** Pending messages in PostgreSQL. Every method is a transaction of its own. */
export function pendingStore(
  sql: PostgresSql,
  protection: Protection,
  withConnection: WithConnection,
  driver: Driver,
  schemaName: string,
): PendingStore {
  // Outside the transaction of what it tells of: a transaction that notifies waits at its commit for all others that do.
  const hint = (consumer: string): Promise<void> =>
    withConnection(
      async (connection) => void (await connection.query(sql.hint, [channelOf(schemaName, consumer)])),
    );

  return {
    hint,
    listen: (consumer, onHint) =>
      keepListening(driver, channelOf(schemaName, consumer), () => hint(consumer), onHint),

    openLanes: (consumer) =>
      withConnection(async (connection) => void (await connection.query(sql.openLanes, [consumer]))),

    async accept(name, claimLockTimeoutMs, messages) {
      const { identities, bodies } = await storedParameters(protection, name.consumer, messages);
      const values = [
        name.consumer,
        name.handlerVersion,
        claimLockTimeoutMs,
        ...identities,
        ...bodies,
        timeArray(messages),
      ];
      // One statement outside a transaction: answered means committed.
      return withConnection(async (connection) =>
        notNewFrom(await connection.query<ClaimRow>(sql.accept, values)),
      );
    },

    async acceptRecords(name, claimLockTimeoutMs, records) {
      const stored = await storedParameters(
        protection,
        name.consumer,
        records.map(({ message }) => message),
      );
      return withConnection((connection) =>
        acceptRecords(connection, sql, name, claimLockTimeoutMs, records, stored),
      );
    },

    async take(consumer, request): Promise<Taken> {
      const { workerId, leaseMs, maxLanes, maxMessages, maxBytes, done } = request;
      const rows = await withConnection(async (connection) => {
        void connection.query(begin);
        const taken = connection.query<TakenRow>(sql.take, [
          ...[consumer, workerId, leaseMs, maxLanes, maxMessages, String(maxBytes)],
          numberArray(done.map(({ lane }) => lane)),
          numberArray(done.map(({ token }) => token)),
        ]);
        taken.catch(() => undefined);
        const committed = connection.query("commit");
        committed.catch(() => undefined);
        const answer = await taken;
        // A lease that is not committed is none.
        const { command } = await committed;
        if (command !== "COMMIT") throw new InboxError("commit-refused", "The taking was rolled back.");
        return answer.rows;
      });
      const messages = await Promise.all(
        rows.flatMap((row) =>
          row.digest === null ? [] : [pendingMessage(protection, consumer, { ...row, digest: row.digest })],
        ),
      );
      return { messages, more: rows.some((row) => row.digest === null) };
    },

    renew: (consumer, leases, leaseMs) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<Lease>(sql.renewLeases, [
          consumer,
          numberArray(leases.map(({ lane }) => lane)),
          numberArray(leases.map(({ token }) => token)),
          leaseMs,
        ]);
        return rows.map(({ lane, token }) => ({ lane: Number(lane), token }));
      }),

    putOff: (name, putOff) =>
      withConnection((connection) => writePutOff(connection, sql, protection, name, putOff)),

    lastPosition: () =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ position: string }>(sql.lastPosition);
        return rows[0]?.position ?? "0";
      }),

    waits: (consumer, upTo) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ waits: boolean }>(sql.pendingWaits, [
          consumer,
          upTo ?? null,
        ]);
        return rows[0]?.waits === true;
      }),
  };
}

/**
 * Attempt, schedule and the key's parking in one transaction. Dying before the commit leaves everything as it was: what
 * came from a source is delivered again, what was pending is taken again when its lease has run out.
 */
async function writePutOff(
  connection: DriverConnection,
  sql: PostgresSql,
  protection: Protection,
  name: ConsumerName,
  { message, position, pending, code, error, counts, park, delayAfter }: PutOff,
): Promise<PutOffAnswer> {
  const { digest } = message;
  const text = safeText(error, errorLimit);
  const end = async <A extends PutOffAnswer>(answer: A): Promise<A> => {
    const { command } = await connection.query("commit");
    if (command !== "COMMIT") throw new InboxError("commit-refused", "The failed attempt was rolled back.");
    return answer;
  };
  // Sealed first: a key that cannot be had must not keep a transaction open.
  const body =
    pending === undefined ? await storedParameters(protection, name.consumer, [message]) : undefined;

  void connection.query(begin);
  if (pending !== undefined) {
    const held = holdStatement(sql.hold, name.consumer, 1_000, [{ digest, lease: pending.lease }]);
    if (!wasHeld(await connection.query<HoldRow>(held.text, held.values))) return end({ kind: "gone" });
  }
  if (position !== undefined && (await wasPassed(connection, sql, name.consumer, position)))
    return end({ kind: "duplicate" });
  const counted = counts
    ? await connection.query<{ attempts: number; elapsed_ms: number }>(sql.recordAttempt, [
        ...[digest, name.consumer, message.tenant, message.producer, message.id, code, text],
        name.handlerVersion,
      ])
    : await connection.query<{ attempts: number; elapsed_ms: number }>(sql.countAttempts, [digest]);
  const { attempts, elapsed_ms: elapsedMs } = counted.rows[0] ?? { attempts: 0, elapsed_ms: 0 };
  const delayMs = delayAfter(attempts, Number(elapsedMs));
  if (delayMs === undefined) return end({ kind: "exhausted", attempts });

  const deferrals = counts ? 0 : (pending?.deferrals ?? 0) + 1;
  if (body === undefined) {
    void connection.query(sql.reschedulePending, [digest, delayMs, attempts, deferrals, code, text]);
  } else {
    // A record's place tells that it is new, however old it is.
    const sentAt = position === undefined ? message.sentAt : undefined;
    const reserved = await reserve(connection, sql, name, { ...message, sentAt });
    if (reserved === "late") {
      await connection.query("rollback");
      return { kind: "late" };
    }
    if (position !== undefined) passRecord(connection, sql, name.consumer, position);
    if (reserved === "known") {
      const { rows } = await connection.query<{ processed: boolean }>(sql.findProcessed, [digest]);
      return end({ kind: rows[0]?.processed === false ? "known" : "duplicate" });
    }
    void connection.query(sql.insertPending, [
      ...[name.consumer, "scheduled", delayMs, attempts, deferrals, code, text],
      ...body.identities,
      ...body.bodies,
    ]);
  }
  if (park && message.key !== undefined) {
    void connection.query(sql.parkKey, [name.consumer, message.key, digest, delayMs]);
  }
  return end({ kind: "stored", attempts, delayMs });
}
