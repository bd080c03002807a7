import { InboxError } from "../../errors.ts";
import type { Protection } from "../protection.ts";
import type { LogPosition } from "../log.ts";
import type { BeginOptions, Claim, Claimed, ConsumerName, LaneTransaction } from "../store.ts";
import type { QueryResult, Statement } from "../statement.ts";
import type { DriverConnection } from "./driver.ts";
import { hexArray, numberArray, textArray } from "./array.ts";
import { behindParked } from "./behind.ts";
import { followedFrom, followStatement, moveStatement, type FollowRow } from "./follow.ts";
import { goneFrom, holdStatement, type HoldRow } from "./hold.ts";
import { claimedFrom, claimStatement, type ClaimRow } from "./sql/claim.ts";
import type { PostgresSql } from "./sql/all.ts";
import { storedParameters } from "./stored-messages.ts";
import type { OutboxSql } from "./sql/outbox.ts";
import { bundleStatement } from "./outbox-bundle.ts";
import { conflictIn, sendStatement } from "./outbox-send.ts";

/**
 * Claim, work and commit on one connection. Everything is sent without waiting where the driver pipelines: `begin`
 * and the claim travel together; so do the work and, if the caller does not wait, the commit.
 */
export function laneTransaction(
  connection: DriverConnection,
  sql: PostgresSql,
  protection: Protection,
  name: ConsumerName,
  options: BeginOptions,
  outbox: OutboxSql,
): LaneTransaction {
  let over = false;
  const send = <Row>(statement: Statement): Promise<QueryResult<Row>> =>
    connection.query<Row>(statement.text, statement.values ?? undefined);

  void connection.query(
    options.isolation === "read committed" ? "begin" : `begin isolation level ${options.isolation}`,
  );

  /** The first statement, and behind it how long the work may wait for locks. */
  function first<Row>(statement: Statement): Promise<QueryResult<Row>> {
    const answer = send<Row>(statement);
    if (options.workLockTimeoutMs !== undefined) {
      void connection.query(`set local lock_timeout = ${options.workLockTimeoutMs}`);
    }
    return answer;
  }

  async function claim(claims: readonly Claim[]): Promise<Claimed> {
    const statement = claimStatement(sql.claim, name, options.claimLockTimeoutMs, claims);
    return claimedFrom(await first<ClaimRow>(statement));
  }

  async function commit(): Promise<void> {
    over = true;
    let command: string;
    try {
      ({ command } = await connection.query("commit"));
    } catch (error) {
      // A server's answer with an SQLSTATE is a definite no, except when it says that the server itself is going away.
      if (isServerError(error) && !error.code.startsWith("57P")) {
        connection.release();
        throw error;
      }
      connection.discard();
      throw new InboxError("commit-unknown", "The connection ended before COMMIT was answered.", {
        cause: error,
      });
    }
    if (command === "COMMIT") return connection.release();
    if (command === "ROLLBACK") {
      connection.release();
      throw new InboxError(
        "commit-refused",
        "The server answered COMMIT with ROLLBACK: a statement had failed.",
      );
    }
    connection.discard();
    throw new InboxError("commit-unknown", `The server answered COMMIT with ${command}.`);
  }

  async function rollback(): Promise<void> {
    if (over) return;
    over = true;
    try {
      await connection.query("rollback");
      connection.release();
    } catch {
      // The server rolls back what its connection leaves open.
      connection.discard();
    }
  }

  return {
    claim,
    async unclaim(claims) {
      await connection.query(sql.unclaim, [hexArray(claims.map((claim) => claim.digest))]);
    },
    async hold(messages) {
      const statement = holdStatement(sql.hold, name.consumer, options.claimLockTimeoutMs, messages);
      return goneFrom(await first<HoldRow>(statement));
    },
    async finish(messages) {
      await connection.query(sql.finish, [
        name.handlerVersion,
        hexArray(messages.map(({ digest }) => digest)),
      ]);
    },
    ...behindParked((text, values) => connection.query(text, values), sql, protection, name),
    async ownedLogs(positions) {
      const logs = textArray(positions.map(({ log }) => log));
      const epochs = numberArray(positions.map(({ epoch }) => epoch));
      const { rows } = await connection.query<LogPosition>(sql.ownedLogs, [name.consumer, logs, epochs]);
      return rows.map(({ log, epoch }) => ({ log, epoch }));
    },
    async followLogs(positions) {
      // As a claim: what is left of a transaction whose connection is gone may hold the row until the server sees that.
      void connection.query(`set local lock_timeout = ${options.claimLockTimeoutMs}`);
      const following = send<FollowRow>(followStatement(sql.followLogs, name.consumer, positions));
      void connection.query(`set local lock_timeout = ${options.workLockTimeoutMs ?? "default"}`);
      const { rows } = await following;
      return { logs: followedFrom(rows), keysParked: rows[0]?.parked === true };
    },
    async moveLogs(moves) {
      await send(moveStatement(sql.moveLogs, name.consumer, moves));
    },
    async storeRecordsBehind(messages) {
      const { identities } = await storedParameters(protection, name.consumer, messages);
      const { rows } = await connection.query<{ digest: string }>(sql.reserveIdentities, [
        ...[name.consumer, name.handlerVersion],
        ...identities,
      ]);
      // One that is known was stored when the same log was read before it was accepted anew.
      const added = new Set(rows.map(({ digest }) => digest.replaceAll("-", "")));
      const kept = messages.filter(({ digest }) => added.has(digest));
      if (kept.length === 0) return;
      const stored = await storedParameters(protection, name.consumer, kept);
      await connection.query(sql.insertPending, [
        ...[name.consumer, "behind", null, 0, 0, null, null],
        ...[...stored.identities, ...stored.bodies],
      ]);
    },
    async sendEffects(effects) {
      const statement = await sendStatement(outbox, protection, undefined, effects, true);
      const conflict = send(statement).then(
        () => undefined,
        (error: unknown) => {
          const digest = conflictIn(error);
          if (digest === undefined) throw error;
          return digest;
        },
      );
      conflict.catch(() => undefined);
      return { conflict };
    },
    bundleEffects: protection.seals ? undefined : (effects) => send(bundleStatement(outbox, effects)),
    query: send,
    healthy(suspect) {
      const status = connection.status();
      if (status !== "unknown") return status === "open";
      // Only a failed statement aborts a transaction, and the caller has seen none.
      return suspect
        ? connection.query("select 1").then(
            () => true,
            () => false,
          )
        : true;
    },
    onLost: (listener) => connection.onLost(listener),
    commit,
    rollback,
  };
}

const isServerError = (error: unknown): error is Error & { code: string } =>
  error instanceof Error &&
  !(error instanceof InboxError) &&
  "code" in error &&
  /^[0-9A-Z]{5}$/.test(String(error.code));
