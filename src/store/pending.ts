import type { RecordPosition } from "./log.ts";
import type { Claim, ConsumerName, NotNew } from "./store.ts";

/** A message with its body, on its way into pending. Everything but the identity is hostile. */
export interface StoredMessage extends Claim {
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly time: Date | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array | null;
}

/** The right to handle a lane's messages, for a time. Every later write carries it. */
export interface Lease {
  /** 0 to 63. */
  readonly lane: number;
  /** A number, as text: it may pass 2^53. Another taking of the same lane has a higher one. */
  readonly token: string;
}

/** A pending message in the hands of a worker. */
export interface PendingMessage extends StoredMessage {
  readonly lease: Lease;
  /** Its place in the order of arrival: a number, as text. */
  readonly position: string;
  /** Failed attempts that count, so far. */
  readonly attempts: number;
  /** How often in a row it was put off without being at fault. */
  readonly deferrals: number;
  /** A worker that did not give the lane back had it in hand: it may be what ended that worker. */
  readonly suspect: boolean;
  /** Why the body could not be opened; the payload is null and the headers are empty then. */
  readonly sealed: Error | undefined;
}

export interface TakeRequest {
  readonly workerId: string;
  readonly leaseMs: number;
  readonly maxLanes: number;
  /** 0: only gives back. */
  readonly maxMessages: number;
  readonly maxBytes: number;
  /** Leases to give back first. */
  readonly done: readonly Lease[];
}

export interface Taken {
  readonly messages: readonly PendingMessage[];
  /** True: ask again at once, there was more to look through. */
  readonly more: boolean;
}

/** A failed attempt that is to be repeated later. */
export interface PutOff {
  readonly message: StoredMessage;
  /** Where it comes from a log with a cursor, which moves past it in the same transaction. */
  readonly position?: RecordPosition | undefined;
  /** Where it was pending. */
  readonly pending: { readonly lease: Lease; readonly deferrals: number } | undefined;
  readonly code: string;
  readonly error: string;
  /** Whether it counts as an attempt. */
  readonly counts: boolean;
  /** Whether later messages of its key shall wait for it. */
  readonly park: boolean;
  /**
   * The wait until the next attempt, in milliseconds, or `undefined` if there shall be none. `attempts`: those that
   * count, this one included. `elapsedMs`: since the first of them.
   */
  readonly delayAfter: (attempts: number, elapsedMs: number) => number | undefined;
}

/**
 * `stored`: it is in pending, to run again after `delayMs`. `exhausted`: the attempt is counted, nothing else is done.
 * `duplicate`: applied, or its log's cursor has passed it. `known`: its body is kept already. `gone`: it is not this worker's any more.
 * `late`: what is forgotten has passed it since it was claimed, and nothing is written: it must not run again by itself.
 */
export type PutOffAnswer =
  | { readonly kind: "stored"; readonly attempts: number; readonly delayMs: number }
  | { readonly kind: "exhausted"; readonly attempts: number }
  | { readonly kind: "duplicate" | "known" | "late" | "gone" };

/** Whoever listens for hints. */
export interface Hints {
  /** Whether the last one that was due has come: false at the start, behind some poolers, and while the database is away. */
  heard(): boolean;
  /** Listens no more. Twice is harmless. */
  close(): void;
}

/** A record to be stored, and where it stands in its log. */
export interface AcceptRecord {
  readonly message: StoredMessage;
  readonly position: RecordPosition;
}

/** What became of each, in order. `passed`: it was done before. `lost`: another process owns the log. `gap`: it is not the next one. */
export type AcceptedRecord = "stored" | "passed" | "lost" | "gap";

/** Messages that are stored and not handled yet. Nothing here is the claim of a message: that is `hold` and `finish`. */
export interface PendingStore {
  /** Makes the consumer's lanes. Twice is harmless. */
  openLanes(consumer: string): Promise<void>;
  /** Stores messages, no two with the same digest; resolves with those that were not new. All or none. */
  accept(
    name: ConsumerName,
    claimLockTimeoutMs: number,
    messages: readonly StoredMessage[],
  ): Promise<readonly NotNew[]>;
  /**
   * `accept` for records of logs with a cursor, in order, which moves past them in the same transaction. Where
   * not all of them are the next ones of logs of this owner nothing is stored, and the answers tell which could be.
   */
  acceptRecords(
    name: ConsumerName,
    claimLockTimeoutMs: number,
    records: readonly AcceptRecord[],
  ): Promise<readonly AcceptedRecord[]>;
  /** Gives lanes back and takes free ones that have work, with what may be handled in them, in order. */
  take(consumer: string, request: TakeRequest): Promise<Taken>;
  /** Prolongs leases and resolves with those that are still held. */
  renew(consumer: string, leases: readonly Lease[], leaseMs: number): Promise<readonly Lease[]>;
  /** Writes a failed attempt and its schedule in one transaction. */
  putOff(name: ConsumerName, putOff: PutOff): Promise<PutOffAnswer>;
  /** The last place given out so far, of any consumer: a number, as text. What is stored later lies behind it. */
  lastPosition(): Promise<string>;
  /**
   * Whether anything of the consumer will be handled without somebody's decision. `upTo`: of what lies up to this place,
   * so that the answer becomes no though others go on storing.
   */
  waits(consumer: string, upTo?: string): Promise<boolean>;
  /** Tells the workers of all processes that something was stored. They look from time to time without it, too. */
  hint(consumer: string): Promise<void>;
  /** Calls `onHint` when there may be something to take, until it is closed. Takes a connection of its own. Never throws. */
  listen(consumer: string, onHint: () => void): Hints;
}
