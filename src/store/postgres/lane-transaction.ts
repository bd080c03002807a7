import { InboxError } from "../../errors.ts";
import type { BeginOptions, Claim, ConsumerName, LaneTransaction, Seen } from "../store.ts";
import type { QueryResult, Statement } from "../statement.ts";
import type { DriverConnection } from "./driver.ts";
import { hexArray } from "./array.ts";
import { claimStatement, undashed } from "./sql/claim.ts";
import { readSeenStatement, type SeenRow } from "./sql/read-seen.ts";
import type { FingerprintMode } from "../../message/fingerprint.ts";
import type { PostgresSql } from "./sql/all.ts";

/**
 * Claim, work and commit on one connection. Everything is sent without waiting where the driver pipelines: `begin`,
 * the lock timeout and the claim travel together; so do the work and, if the caller does not wait, the commit.
 */
export function laneTransaction(
  connection: DriverConnection,
  sql: PostgresSql,
  name: ConsumerName,
  options: BeginOptions,
): LaneTransaction {
  let over = false;
  const send = <Row>(statement: Statement): Promise<QueryResult<Row>> =>
    connection.query<Row>(statement.text, statement.values ?? undefined);

  void connection.query(
    options.isolation === "read committed" ? "begin" : `begin isolation level ${options.isolation}`,
  );

  async function claim(claims: readonly Claim[]): Promise<readonly Claim[]> {
    // "show" takes no snapshot: at REPEATABLE READ the claim stays the first statement that does.
    const before = connection.query<{ lock_timeout: string }>("show lock_timeout");
    void connection.query(`set local lock_timeout = ${options.claimLockTimeoutMs}`);
    const claimed = await send<{ digest: string }>(claimStatement(sql.claim, name, claims));
    const { rows } = await before;
    const workTimeout = options.workLockTimeoutMs ?? rows[0]?.lock_timeout ?? "0";
    void connection.query(`set local lock_timeout = '${workTimeout}'`);
    return claimsNotIn(claimed, claims);
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
    readSeen: (claims) => readSeen(connection, sql, claims),
    async unclaim(claims) {
      await connection.query(sql.unclaim, [hexArray(claims.map((claim) => claim.digest))]);
    },
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

/** Rows are matched by key, never by position. */
export function claimsNotIn(
  claimed: QueryResult<{ digest: string }>,
  claims: readonly Claim[],
): readonly Claim[] {
  if (claimed.rows.length === claims.length) return [];
  const fresh = new Set(claimed.rows.map((row) => undashed(row.digest)));
  return claims.filter((claim) => !fresh.has(claim.digest));
}

export async function readSeen(
  connection: Pick<DriverConnection, "query">,
  sql: PostgresSql,
  claims: readonly Claim[],
): Promise<readonly Seen[]> {
  const { text, values } = readSeenStatement(sql.readSeen, claims);
  const { rows } = await connection.query<SeenRow>(text, values);
  return rows.map((row) => ({
    digest: undashed(row.digest),
    tenant: row.tenant,
    producer: row.producer,
    id: row.id,
    fingerprint: row.fingerprint,
    fingerprintMode: row.mode as FingerprintMode,
    processed: row.processed,
  }));
}

const isServerError = (error: unknown): error is Error & { code: string } =>
  error instanceof Error &&
  !(error instanceof InboxError) &&
  "code" in error &&
  /^[0-9A-Z]{5}$/.test(String(error.code));
