import { InboxError } from "../../errors.ts";
import { showValue } from "../../message/show-value.ts";
import { createProtection, type PayloadKeys } from "../protection.ts";
import type { Store } from "../store.ts";
import { answerStore } from "./answers.ts";
import { cleanupStore } from "./cleanup.ts";
import type { DriverConnection } from "./driver.ts";
import { driverFor } from "./drivers/detect.ts";
import { userTransaction } from "./drivers/user-transaction.ts";
import { joinedTransaction } from "./joined-transaction.ts";
import { laneTransaction } from "./lane-transaction.ts";
import { logStore } from "./log-store.ts";
import { checkSchema } from "./migrate.ts";
import { operatorStore } from "./operator-store.ts";
import { outboxStore } from "./outbox.ts";
import { outboxOperatorStore } from "./outbox-operator.ts";
import { pendingStore } from "./pending.ts";
import { quarantineStore } from "./quarantine-store.ts";
import { insertQuarantine } from "./quarantine.ts";
import { progressStore } from "./progress.ts";
import { recordAttempt } from "./record-attempt.ts";
import { retentionDesk } from "./retention-desk.ts";
import { retentionStore } from "./retention.ts";
import { quoteSchema } from "./schema-name.ts";
import { postgresSql } from "./sql/all.ts";
import { outboxSql } from "./sql/outbox.ts";
import { outboxForgetSql } from "./sql/outbox-forget.ts";
import { outboxOperatorSql } from "./sql/outbox-operator.ts";
import { outboxStatusSql } from "./sql/outbox-status.ts";

/** How the inbox uses a pool. */
export interface PostgresOptions {
  /** The schema that holds the inbox's tables, as given to `inbox migrate`. Default `inbox`. */
  readonly schema?: string | undefined;
  /** How long the store's own small statements wait for a connection, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * With `pg`: whether statements are prepared under names. Default: on connections that are the server's own, and not
   * behind a pooler. `true`: also behind a pooler that passes named statements through. `false`: never.
   */
  readonly prepare?: boolean | undefined;
  /** Keys to seal stored bodies with, in pending and in quarantine (AES-256-GCM). Default: they are stored as they came. */
  readonly payloadKeys?: PayloadKeys | undefined;
}

/**
 * The inbox's tables in PostgreSQL 14 or later, through your own pool: a `pg` Pool or a `postgres` client. The schema is
 * checked on first use; a wrong version rejects with `schema-missing`, `schema-outdated` or `schema-newer`. Throws
 * `invalid-option` for anything that is neither.
 */
export function postgres(pool: unknown, options: PostgresOptions = {}): Store {
  const driver = driverFor(pool, { prepare: options.prepare });
  const schemaName = options.schema ?? "inbox";
  const sql = postgresSql(quoteSchema(schemaName));
  const outbox = outboxSql(quoteSchema(schemaName));
  const refusals = outboxOperatorSql(quoteSchema(schemaName));
  const operatorsSql = {
    ...refusals,
    ...outboxStatusSql(quoteSchema(schemaName)),
    ...outboxForgetSql(quoteSchema(schemaName)),
  };
  const protection = createProtection(options.payloadKeys);
  const connectTimeoutMs = options.connectTimeoutMs ?? 5_000;
  let checked = false;

  async function connect(timeoutMs: number): Promise<DriverConnection> {
    const connection = await driver.connect(timeoutMs);
    if (checked) return connection;
    try {
      await checkSchema(connection, schemaName);
      checked = true;
      return connection;
    } catch (error) {
      connection.release();
      throw error;
    }
  }

  /** One statement, or one small transaction, on a connection of its own. */
  async function withConnection<T>(use: (connection: DriverConnection) => Promise<T>): Promise<T> {
    const connection = await connect(connectTimeoutMs);
    try {
      const result = await use(connection);
      connection.release();
      return result;
    } catch (error) {
      connection.discard();
      throw error;
    }
  }

  const run = (text: string, values: readonly unknown[]): Promise<void> =>
    withConnection(async (connection) => void (await connection.query(text, values)));

  return {
    maxConnections: driver.maxConnections,
    async begin(name, begin) {
      return laneTransaction(await connect(begin.connectTimeoutMs), sql, protection, name, begin, outbox);
    },
    join: (name, tx, claimLockTimeoutMs, caller) =>
      joinedTransaction(userTransaction(tx, caller), sql, protection, name, claimLockTimeoutMs, caller),

    recordAttempt: (name, attempt) =>
      withConnection((connection) => recordAttempt(connection, sql, name, attempt)),

    quarantine: (name, entry) =>
      withConnection((connection) => insertQuarantine(connection, sql, protection, name, entry)),
    quarantined: quarantineStore(sql, protection, withConnection),
    operator: operatorStore(sql, protection, withConnection),

    workers: {
      open: (consumer, workerId, leaseMs) =>
        withConnection(async (connection) => {
          const values = [workerId, consumer, leaseMs];
          const { rows } = await connection.query<{ successor: string }>(sql.openWorker, values);
          if (rows[0] !== undefined) throw consumerRetired(consumer, rows[0].successor);
        }),
      heartbeat: (consumer, workerId, leaseMs) =>
        withConnection(async (connection) => {
          const { rows } = await connection.query<HeartbeatRow>(sql.heartbeat, [workerId, consumer, leaseMs]);
          const successor = rows[0]?.successor ?? undefined;
          if (successor !== undefined) throw consumerRetired(consumer, successor);
          return { died: rows[0]?.died ?? 0 };
        }),
      close: (workerId) => run(sql.closeWorker, [workerId]),
      markStarted: (workerId, digest) =>
        withConnection(async (connection) => {
          const { rows } = await connection.query<{ crashes: number; running: number }>(sql.markStarted, [
            workerId,
            digest,
          ]);
          return { crashes: rows[0]?.crashes ?? 0, running: rows[0]?.running ?? 0 };
        }),
      clearStarted: (workerId, digest, all) => run(sql.clearStarted, [workerId, digest, all]),
    },

    cursors: {
      load: (consumer, source) =>
        withConnection(async (connection) => {
          const { rows } = await connection.query<{ position: string }>(sql.loadCursor, [consumer, source]);
          return rows[0]?.position;
        }),
      save: (consumer, source, position) => run(sql.saveCursor, [consumer, source, position]),
    },

    logs: logStore(sql, withConnection),

    answers: answerStore(sql, withConnection),
    retention: retentionStore(sql, withConnection),
    progress: progressStore(quoteSchema(schemaName), withConnection),
    cleanup: cleanupStore(quoteSchema(schemaName), withConnection),
    retentionDesk: retentionDesk(quoteSchema(schemaName), withConnection),
    pending: pendingStore(sql, protection, withConnection, driver, schemaName),
    outbox: outboxStore(outbox, refusals.recordRefusals, protection, withConnection),
    outboxOperator: outboxOperatorStore(operatorsSql, protection, withConnection),

    ping: () => withConnection(async (connection) => void (await connection.query("select 1"))),
  };
}

interface HeartbeatRow {
  readonly died: number;
  /** Who took over from the consumer, if it is retired. */
  readonly successor: string | null;
}

const consumerRetired = (consumer: string, successor: string): InboxError =>
  new InboxError(
    "consumer-retired",
    `The consumer ${showValue(consumer)} is retired: ${showValue(successor)} has taken over.`,
  );
