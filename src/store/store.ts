import type { Fingerprint, FingerprintMode } from "../message/fingerprint.ts";
import type { AnswerStore } from "./answer.ts";
import type { CleanupStore } from "./cleanup.ts";
import type { FollowedLog, LogMove, LogPosition, LogStore, RecordPosition } from "./log.ts";
import type { OperatorStore } from "./operator-store.ts";
import type { AskedEffect, NewEffect, OutboxStore } from "./outbox.ts";
import type { OutboxOperatorStore } from "./outbox-operator.ts";
import type { Lease, PendingStore, StoredMessage } from "./pending.ts";
import type { ProgressStore } from "./progress.ts";
import type { QueryResult, Statement } from "./statement.ts";
import type { QuarantineInsert } from "./quarantine-entry.ts";
import type { QuarantineStore } from "./quarantine-store.ts";
import type { RetentionDesk } from "./retention-desk.ts";
import type { RetentionStore } from "./retention.ts";

/** One message as the claim sees it. */
export interface Claim {
  /** 32 lower-case hex digits: the unique key. */
  readonly digest: string;
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
  readonly fingerprint: Fingerprint;
  /**
   * When it was sent, in whole milliseconds since 1970, as its producer or else its broker says; `undefined`: nobody says.
   * Only compared with the horizon.
   */
  readonly sentAt?: number | undefined;
}

/** What the ledger holds for a digest that could not be claimed. */
export interface Seen {
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
  readonly fingerprint: string;
  readonly fingerprintMode: FingerprintMode;
  /** False: the body waits elsewhere (quarantine); nothing was applied. */
  readonly processed: boolean;
}

/**
 * A claim that was not new. `seen`: the committed row; `undefined` if it has gone since the claim met it, or if the
 * message is `late`: sent before the horizon and not in the ledger.
 */
export interface NotNew {
  readonly digest: string;
  readonly late: boolean;
  readonly seen: Seen | undefined;
}

/** The answer to a claim. */
export interface Claimed {
  readonly notNew: readonly NotNew[];
  /** Whether any key of the consumer is parked. */
  readonly keysParked: boolean;
}

export type IsolationLevel = "read committed" | "repeatable read" | "serializable";

export interface BeginOptions {
  readonly isolation: IsolationLevel;
  /** How long a claim may wait for another transaction's claim of the same message, in milliseconds. */
  readonly claimLockTimeoutMs: number;
  /** How long a handler's statement may wait for a lock, in milliseconds; `undefined`: what the session has. */
  readonly workLockTimeoutMs: number | undefined;
  readonly connectTimeoutMs: number;
}

/** A transaction of the inbox's own: claim, work, commit. After `commit` or `rollback` it is over. */
export interface LaneTransaction {
  /**
   * Inserts the identities, all of one consumer and no two with the same digest; tells which were not new. The first
   * statement of the transaction that takes a snapshot.
   */
  claim(claims: readonly Claim[]): Promise<Claimed>;
  /** Takes back claims of this very transaction. */
  unclaim(claims: readonly Claim[]): Promise<void>;
  /**
   * Locks pending messages under their leases, in place of a claim; resolves with the digests of those that are another
   * worker's, or handled. `finish` completes the claim.
   */
  hold(messages: readonly (Claim & { readonly lease: Lease })[]): Promise<ReadonlySet<string>>;
  /** Takes held messages out of pending and marks them as processed. All, or the transaction fails. */
  finish(messages: readonly Claim[]): Promise<void>;
  /** Which of these keys are parked; they stay so until the transaction ends. */
  parkedKeys(keys: readonly string[]): Promise<ReadonlySet<string>>;
  /** Turns claims of this very transaction into stored messages that wait behind their key. */
  storeBehind(messages: readonly StoredMessage[]): Promise<void>;
  /** Those of these that are still their owner's; they stay so until the transaction ends. */
  ownedLogs(positions: readonly LogPosition[]): Promise<readonly LogPosition[]>;
  /**
   * In place of a claim, for records that their logs' cursors tell apart: those logs that are still their owner's, and how far
   * they are applied. They are this transaction's until it ends.
   */
  followLogs(
    positions: readonly LogPosition[],
  ): Promise<{ readonly logs: readonly FollowedLog[]; readonly keysParked: boolean }>;
  /** Moves followed cursors forward. All, or the transaction fails. */
  moveLogs(moves: readonly LogMove[]): Promise<void>;
  /** Stores followed records behind their key, under identities that they had none of before. */
  storeRecordsBehind(messages: readonly StoredMessage[]): Promise<void>;
  /**
   * Stores effects, no two with the same digest. Resolves when the statement is on its way, with its answer: the digest
   * of an effect that was asked for before with another payload, after which nothing can be committed any more.
   */
  sendEffects(effects: readonly NewEffect[]): Promise<{ readonly conflict: Promise<string | undefined> }>;
  /**
   * Stores up to 1,024 effects to one destination as one row, without delays and lifetimes, whose ids follow from
   * messages that this very transaction has claimed: so nobody else can have asked for them. Sent at once. `undefined`
   * where bodies are sealed.
   */
  readonly bundleEffects: ((effects: readonly AskedEffect[]) => Promise<QueryResult>) | undefined;
  query<Row = Record<string, unknown>>(statement: Statement): Promise<QueryResult<Row>>;
  /** Whether the transaction can still commit; asks the server only where the driver does not know. */
  healthy(suspect: boolean): Promise<boolean> | boolean;
  onLost(listener: (error: Error) => void): void;
  /**
   * Resolves only if the server answered COMMIT. Rejects with `commit-refused` (nothing is committed),
   * `commit-unknown` (nobody knows), or the server's own error (nothing is committed).
   */
  commit(): Promise<void>;
  /** Never rejects. */
  rollback(): Promise<void>;
}

/** A transaction somebody else opened and will end. */
export interface JoinedTransaction extends Pick<LaneTransaction, "claim" | "parkedKeys" | "storeBehind"> {
  /** Throws `not-a-transaction` unless a transaction is open and healthy. */
  prove(): Promise<void>;
  /** Stores messages, no two with the same digest; resolves with those that were not new. */
  accept(messages: readonly StoredMessage[]): Promise<readonly NotNew[]>;
}

/** One failed attempt, written after its rollback. */
export interface FailedAttempt extends Claim {
  /** Where it comes from a log with a cursor: not counted for who does not own it any more (`log-lost`). */
  readonly position?: RecordPosition | undefined;
  readonly code: string;
  readonly error: string;
}

export interface AttemptCount {
  /** Failed attempts so far, this one included. */
  readonly attempts: number;
  /** Milliseconds since the first of them. */
  readonly elapsedMs: number;
}

/** Who is speaking: fills the columns that are the same for all rows of a consumer. */
export interface ConsumerName {
  readonly consumer: string;
  readonly handlerVersion: string;
}

/**
 * What happened to a message that went to quarantine. `gone`: it was pending, and is not in this worker's hands any more.
 * `late`: it is kept as late, for what is forgotten has passed it since it was claimed.
 */
export type QuarantineOutcome = "stored" | "late" | "already-applied" | "gone";

export interface Store {
  /** How many connections it can use at once; `undefined` where the pool does not tell. */
  readonly maxConnections: number | undefined;
  begin(name: ConsumerName, options: BeginOptions): Promise<LaneTransaction>;
  /** `caller`: the function that was given the transaction, for errors. */
  join(name: ConsumerName, tx: unknown, claimLockTimeoutMs: number, caller: string): JoinedTransaction;
  recordAttempt(name: ConsumerName, attempt: FailedAttempt): Promise<AttemptCount>;
  quarantine(name: ConsumerName, entry: QuarantineInsert): Promise<QuarantineOutcome>;
  readonly quarantined: QuarantineStore;
  /** What operators ask of messages that wait, and of any one message. */
  readonly operator: OperatorStore;
  /** The crash book of one worker process. */
  readonly workers: WorkerStore;
  readonly cursors: CursorStore;
  readonly logs: LogStore;
  readonly answers: AnswerStore;
  readonly pending: PendingStore;
  readonly retention: RetentionStore;
  readonly progress: ProgressStore;
  readonly cleanup: CleanupStore;
  readonly retentionDesk: RetentionDesk;
  readonly outbox: OutboxStore;
  /** What operators ask of the outbox, and what relays tell them. */
  readonly outboxOperator: OutboxOperatorStore;
  /** Resolves when the database answers and the schema fits; rejects with why not. */
  ping(): Promise<void>;
}

export interface WorkerStore {
  /** Rejects with `consumer-retired` if another consumer has taken over. */
  open(consumer: string, workerId: string, leaseMs: number): Promise<void>;
  /** Renews the lease and tells how many workers of the consumer died without closing. Rejects as `open` does. */
  heartbeat(consumer: string, workerId: string, leaseMs: number): Promise<{ readonly died: number }>;
  close(workerId: string): Promise<void>;
  /** Commits the mark that this worker is about to run the message, and tells of marks others left. */
  markStarted(
    workerId: string,
    digest: string,
  ): Promise<{ readonly crashes: number; readonly running: number }>;
  /** Removes this worker's mark, or with `all` everybody's. */
  clearStarted(workerId: string, digest: string, all: boolean): Promise<void>;
}

export interface CursorStore {
  load(consumer: string, source: string): Promise<string | undefined>;
  save(consumer: string, source: string, position: string): Promise<void>;
}
