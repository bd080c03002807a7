import type { Driver, DriverConnection } from "../store/postgres/driver.ts";
import { hexArray } from "../store/postgres/array.ts";
import { checkSchema } from "../store/postgres/migrate.ts";
import { safeText } from "../store/postgres/safe-text.ts";
import { quoteSchema } from "../store/postgres/schema-name.ts";
import type { Decider } from "../store/quarantine-store.ts";
import type { ReplayTarget } from "./policy.ts";
import { replaySql } from "./replay-sql.ts";

/** What the ledger holds of one message: under the replay's name, and under the original's (`of…`). */
export interface ReplayStanding {
  /** The handler version that took it; null: it was never taken. */
  readonly version: string | null;
  /** False: its body is in pending or in quarantine. */
  readonly applied: boolean;
  readonly fingerprint: string | null;
  readonly mode: string | null;
  /** Of the body that a repair gave back. */
  readonly repaired: string | null;
  readonly repaired_mode: string | null;
  readonly of_version: string | null;
  readonly of_applied: boolean;
  /** Whether it was applied before the moment that was asked for. */
  readonly of_before: boolean | null;
  /** Of the body that was applied: a repaired one, where there is one. */
  readonly of_fingerprint: string | null;
  readonly of_mode: string | null;
}

/** How one run of a replay is recorded. */
export interface ReplayStart extends Decider {
  readonly target: ReplayTarget;
  readonly source: string;
  readonly handlerVersion: string;
  readonly rate: number | undefined;
}

/** A run of a replay as it is recorded. Times are the database's. */
export interface ReplayRow extends Decider {
  /** A number, as text. */
  readonly id: string;
  readonly policy: ReplayTarget["kind"];
  readonly consumer: string;
  readonly of: string | undefined;
  readonly source: string;
  readonly effects: ReplayTarget["effects"];
  readonly handlerVersion: string;
  /** Messages a second at most. */
  readonly rate: number | undefined;
  /** The run that did not come to its end, and that this one went on with. */
  readonly resumes: string | undefined;
  readonly startedAt: Date;
  /** `counts` are as of then. */
  readonly seenAt: Date;
  readonly endedAt: Date | undefined;
  /** `undefined`: it runs, or its process died. */
  readonly ended: "done" | "stopped" | "failed" | undefined;
  readonly error: string | undefined;
  readonly counts: Readonly<Record<string, unknown>>;
}

/** How a successor stands against the consumer it shall take over from, as of one moment. */
export interface CaughtUp {
  /** What the consumer has applied, as far as it is remembered. */
  readonly applied: number;
  /** Of those, what its successor has never seen. */
  readonly missing: number;
  /** Of those, what its successor has in pending or in quarantine. */
  readonly stored: number;
  /** What the consumer itself has in pending. */
  readonly pending: number;
  /** Processes that work for the consumer now. */
  readonly workers: number;
}

/** A consumer that another one has taken over from. */
export interface RetiredConsumer extends Decider {
  readonly consumer: string;
  readonly successor: string;
  readonly at: Date;
  readonly applied: number;
  readonly missing: number;
}

/** Tables of replays, and what they ask of the ledger. Each call takes a connection of its own from the pool. */
export interface ReplayTables {
  now(): Promise<Date>;
  standing(
    targets: readonly string[],
    originals: readonly string[],
    before: Date,
  ): Promise<readonly ReplayStanding[]>;
  /** How many messages a consumer had applied before a moment, by handler version. A scan of the ledger. */
  applied(consumer: string, before: Date): Promise<Readonly<Record<string, number>>>;
  /** `known`: a replay of this policy took messages under this name before. `used`: somebody did. */
  mayTake(
    consumer: string,
    policy: ReplayTarget["kind"],
  ): Promise<{ readonly known: boolean; readonly used: boolean }>;
  start(start: ReplayStart): Promise<{ readonly id: string; readonly resumes: string | undefined }>;
  note(id: string, counts: unknown, ended?: ReplayRow["ended"], error?: string): Promise<void>;
  list(consumer: string | undefined, limit: number): Promise<readonly ReplayRow[]>;
  caughtUp(consumer: string, successor: string): Promise<CaughtUp>;
  /** Resolves with false if it was retired before. */
  retire(retired: Omit<RetiredConsumer, "at">): Promise<boolean>;
  retired(consumer: string | undefined): Promise<readonly RetiredConsumer[]>;
}

export function replayTables(driver: Driver, schemaName: string, connectTimeoutMs: number): ReplayTables {
  const sql = replaySql(quoteSchema(schemaName));
  let checked = false;

  async function connect(): Promise<DriverConnection> {
    const connection = await driver.connect(connectTimeoutMs);
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

  async function ask<Row>(
    text: string,
    values: readonly unknown[],
  ): Promise<{ rows: readonly Row[]; rowCount: number | null }> {
    const connection = await connect();
    try {
      const answer = await connection.query<Row>(text, values);
      connection.release();
      return answer;
    } catch (error) {
      connection.discard();
      throw error;
    }
  }

  return {
    async now() {
      const { rows } = await ask<{ now: Date }>(sql.now, []);
      return rows[0]!.now;
    },
    async standing(targets, originals, before) {
      const values = [hexArray(targets), hexArray(originals), before.toISOString()];
      return (await ask<ReplayStanding>(sql.standing, values)).rows;
    },
    async applied(consumer, before) {
      const { rows } = await ask<{ version: string; messages: string }>(sql.applied, [
        consumer,
        before.toISOString(),
      ]);
      return Object.fromEntries(rows.map(({ version, messages }) => [version, Number(messages)]));
    },
    async mayTake(consumer, policy) {
      const { rows } = await ask<{ known: boolean; used: boolean }>(sql.mayTake, [consumer, policy]);
      return rows[0]!;
    },
    async start({ target, source, handlerVersion, rate, by, why }) {
      const { kind, consumer, of, effects } = target;
      const { rows } = await ask<{ id: string; resumes: string | null }>(sql.start, [
        ...[kind, consumer, of ?? null, safeText(source, 4_096), effects, handlerVersion, rate ?? null],
        ...[safeText(by, 1_024), safeText(why, 16_384)],
      ]);
      return { id: rows[0]!.id, resumes: rows[0]!.resumes ?? undefined };
    },
    async note(id, counts, ended, error) {
      const text = error === undefined ? null : safeText(error, 16_384);
      await ask(sql.note, [id, JSON.stringify(counts), ended ?? null, text]);
    },
    async list(consumer, limit) {
      return (await ask<ReplayRecord>(sql.list, [consumer ?? null, limit])).rows.map(rowOf);
    },
    async caughtUp(consumer, successor) {
      const { rows } = await ask<Record<keyof CaughtUp, string | number>>(sql.caughtUp, [
        consumer,
        successor,
      ]);
      const { applied, missing, stored, pending, workers } = rows[0]!;
      return {
        ...{ applied: Number(applied), missing: Number(missing), stored: Number(stored) },
        ...{ pending: Number(pending), workers: Number(workers) },
      };
    },
    async retire({ consumer, successor, by, why, applied, missing }) {
      const { rowCount } = await ask(sql.retire, [
        ...[
          consumer,
          successor,
          safeText(by, 1_024),
          safeText(why, 16_384),
          String(applied),
          String(missing),
        ],
      ]);
      return rowCount === 1;
    },
    async retired(consumer) {
      const { rows } = await ask<RetiredRecord>(sql.retired, [consumer ?? null]);
      return rows.map((row) => ({
        ...{ consumer: row.consumer, successor: row.successor, at: row.retired_at },
        ...{ by: row.decided_by, why: row.reason },
        ...{ applied: Number(row.applied), missing: Number(row.missing) },
      }));
    },
  };
}

interface RetiredRecord {
  readonly consumer: string;
  readonly successor: string;
  readonly retired_at: Date;
  readonly decided_by: string;
  readonly reason: string;
  readonly applied: string;
  readonly missing: string;
}

interface ReplayRecord {
  readonly id: string;
  readonly policy: ReplayRow["policy"];
  readonly consumer: string;
  readonly of_consumer: string | null;
  readonly source: string;
  readonly effects: ReplayRow["effects"];
  readonly handler_version: string;
  readonly rate: number | null;
  readonly resumes: string | null;
  readonly decided_by: string;
  readonly reason: string;
  readonly started_at: Date;
  readonly seen_at: Date;
  readonly ended_at: Date | null;
  readonly ended: NonNullable<ReplayRow["ended"]> | null;
  readonly error: string | null;
  readonly counts: string;
}

const rowOf = (row: ReplayRecord): ReplayRow => ({
  ...{ id: row.id, policy: row.policy, consumer: row.consumer, of: row.of_consumer ?? undefined },
  ...{ source: row.source, effects: row.effects, handlerVersion: row.handler_version },
  ...{ rate: row.rate ?? undefined, resumes: row.resumes ?? undefined },
  ...{ by: row.decided_by, why: row.reason, startedAt: row.started_at, seenAt: row.seen_at },
  ...{ endedAt: row.ended_at ?? undefined, ended: row.ended ?? undefined, error: row.error ?? undefined },
  counts: JSON.parse(row.counts) as Record<string, unknown>,
});
