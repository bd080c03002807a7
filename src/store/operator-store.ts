import type { FingerprintMode } from "../message/fingerprint.ts";
import type { Identity } from "../message/message.ts";
import type { QuarantineRow } from "./quarantine-entry.ts";

/**
 * `ready`: may be handled now. `scheduled`: may be handled from `dueAt` on. `behind`: waits until the messages of its key
 * before it are settled.
 */
export type PendingState = "ready" | "scheduled" | "behind";

/** A line of `inbox pending list`. Times are the database's. */
export interface PendingRow {
  readonly consumer: string;
  readonly tenant: string;
  readonly producer: string;
  readonly messageId: string;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly state: PendingState;
  /** Its place in the order of arrival: a number, as text. */
  readonly position: string;
  readonly receivedAt: Date;
  /** `undefined` unless it is scheduled. */
  readonly dueAt: Date | undefined;
  /** Failed attempts that count. */
  readonly attempts: number;
  /** How often in a row it was put off for something that is not its fault. */
  readonly deferrals: number;
  /** Of the last failed attempt; `undefined` where there was none. */
  readonly code: string | undefined;
  readonly error: string | undefined;
  readonly payloadBytes: number;
}

/** One pending message, whole. */
export interface PendingEntry extends PendingRow {
  readonly time: Date | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** `null` for a message without a body. */
  readonly payload: Uint8Array | null;
  readonly fingerprint: string;
  readonly fingerprintMode: FingerprintMode;
  /** The name of the key its body is sealed with; `undefined` where it is stored as it came. */
  readonly keyId: string | undefined;
}

/** Which pending messages. All that is given must fit. */
export interface PendingFilter {
  readonly consumer?: string | undefined;
  readonly state?: PendingState | undefined;
  readonly tenant?: string | undefined;
  readonly producer?: string | undefined;
  readonly messageId?: string | undefined;
  readonly key?: string | undefined;
  readonly type?: string | undefined;
  /** Of the last failed attempt. */
  readonly code?: string | undefined;
}

export interface PendingListOptions extends PendingFilter {
  /** Messages behind this position. */
  readonly after?: string | undefined;
  /** Default 100, at most 1,000. */
  readonly limit?: number | undefined;
}

/** A failed attempt that counted. */
export interface AttemptRow {
  readonly at: Date;
  readonly code: string;
  readonly error: string;
  readonly handlerVersion: string;
}

/** A key that waits, and what it waits for. */
export interface ParkedKey {
  readonly key: string;
  readonly parkedAt: Date;
  /** When it is looked at again; `undefined`: when the entry in quarantine has its decision. */
  readonly dueAt: Date | undefined;
  /** The message that the others wait for. */
  readonly head: Identity | undefined;
  /** The open entry that blocks the key. */
  readonly entryId: string | undefined;
}

/** The right of a worker to handle the lane that a message lies in. */
export interface LaneLease {
  readonly lane: number;
  readonly workerId: string;
  readonly until: Date;
  /** Its time is over: another worker may take the lane. */
  readonly expired: boolean;
}

/** A mark that a worker was about to run the message. */
export interface StartedMark {
  readonly workerId: string;
  readonly at: Date;
  /** False: the worker died, or was closed. */
  readonly running: boolean;
}

/** All that the tables hold of one identity, as of one moment. */
export interface MessageFacts extends Identity {
  readonly consumer: string;
  readonly digest: string;
  /** The database's time. */
  readonly at: Date;
  /** The row of the ledger; `undefined` where the identity is not taken. */
  readonly ledger:
    | {
        /** `undefined`: nothing is applied, the body is kept elsewhere. */
        readonly processedAt: Date | undefined;
        readonly handlerVersion: string;
        readonly fingerprint: string;
        readonly fingerprintMode: FingerprintMode;
      }
    | undefined;
  /** Oldest first; the last 100. */
  readonly attempts: readonly AttemptRow[];
  readonly attemptCount: number;
  readonly pending:
    | (PendingRow & {
        readonly lease: LaneLease | undefined;
        readonly parked: ParkedKey | undefined;
        /** Messages of its key that are pending before it; counts to 1,000. */
        readonly before: number;
      })
    | undefined;
  /** Every entry of the identity, oldest first. */
  readonly quarantined: readonly QuarantineRow[];
  readonly started: readonly StartedMark[];
  /** Where its id is a record's place in a log that the consumer follows with a cursor. */
  readonly log: FollowedRecord | undefined;
}

/** How far the log of a record is applied. */
export interface FollowedRecord {
  readonly log: string;
  /** Everything up to this offset is applied, pending or in quarantine, as text; `undefined`: nothing yet. */
  readonly applied: string | undefined;
  /** The record is. */
  readonly passed: boolean;
}

/** What operators ask of messages that wait, and of any one message. */
export interface OperatorStore {
  /** In the order of arrival. */
  listPending(options: PendingListOptions): Promise<readonly PendingRow[]>;
  countPending(filter: PendingFilter): Promise<number>;
  /** Rejects with `payload-key-missing` or `payload-damaged` if the body is sealed and does not open. */
  showPending(digest: string): Promise<PendingEntry | undefined>;
  /**
   * Lets scheduled messages run now: at most 1,000, and resolves with how many. A message that a worker has in hand is
   * left alone.
   */
  hurry(filter: PendingFilter & { readonly digest?: string | undefined }): Promise<number>;
  /**
   * The identities of this id, at most 50: by a scan of the ledger and the attempts, because an id alone is not the key. An
   * id that is a record's place is looked for among logs with a cursor, too.
   */
  find(id: string, filter: IdentityFilter): Promise<readonly (Identity & { readonly consumer: string })[]>;
  facts(consumer: string, identity: Identity, digest: string): Promise<MessageFacts>;
}

export interface IdentityFilter {
  readonly consumer?: string | undefined;
  readonly tenant?: string | undefined;
  readonly producer?: string | undefined;
}
