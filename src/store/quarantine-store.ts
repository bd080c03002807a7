import type { Fingerprint } from "../message/fingerprint.ts";
import type { Identity } from "../message/message.ts";
import type { InboxError } from "../errors.ts";
import type { StoredBody } from "./protection.ts";
import type {
  QuarantineEntry,
  QuarantineFilter,
  QuarantineGroup,
  QuarantineInsert,
  QuarantineListOptions,
  QuarantineRow,
} from "./quarantine-entry.ts";

/** Who decides, and why. */
export interface Decider {
  readonly by: string;
  readonly why: string;
}

/**
 * `retry`: given back to be handled, as it is; not what is late. `apply`: the same for what is late, by the word of somebody
 * who knows that it was not applied. `discard`: it will not be handled.
 */
export type DecisionOnEntries = "retry" | "apply" | "discard";

/** A decision on many entries. It counts as soon as it is recorded; the entries follow in batches. */
export interface BulkDecision extends Decider {
  readonly id: string;
  readonly kind: DecisionOnEntries | "purge";
  readonly at: Date;
  /** The filter, as JSON. */
  readonly filter: string;
  /** How many entries it is about. */
  readonly matched: number;
  /** So far. */
  readonly decided: number;
  /** Entries that were decided on otherwise meanwhile, or that cannot be retried; these stay as they are. */
  readonly skipped: number;
  /** `undefined` while batches are left. */
  readonly finishedAt: Date | undefined;
}

/** `undefined`: as many entries fit as were expected, and the decision is recorded. */
export interface BulkAnswer {
  readonly matched: number;
  readonly decision: BulkDecision | undefined;
}

/** A body, and perhaps an identity, in place of the entry's own. */
export interface RepairRequest {
  readonly identity: Identity;
  /** Of the identity. */
  readonly digest: string;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array | null;
  readonly fingerprint: Fingerprint;
}

/** An entry as it lies in the table: what is sealed stays sealed. */
export interface StoredEntry extends Omit<QuarantineEntry, "headers" | "payload"> {
  readonly digest: string | undefined;
  readonly stored: StoredBody;
}

export type EntryMark = Pick<StoredEntry, "id" | "consumer" | "digest" | "fingerprint" | "firstFailedAt">;

/** An entry of an export, ready to be kept. */
export interface ImportedEntry extends Omit<QuarantineInsert, "rawIdentity"> {
  readonly consumer: string;
  readonly handlerVersion: string;
  readonly rawIdentityText: string | undefined;
  readonly deliveries: number;
  readonly firstFailedAt: Date;
  readonly lastFailedAt: Date;
  /** Given instead of headers and payload where the body is sealed. */
  readonly sealed: StoredBody | undefined;
  /** The same for the same entry, however often it is imported. */
  readonly importKey: string;
}

/** `known`: imported before, or an open entry has this body. `applied`: the identity is applied with this payload. */
export type ImportOutcome = "imported" | "known" | "applied";

/** What is in quarantine, and the decisions on it. Every method is a transaction of its own. */
export interface QuarantineStore {
  list(options: QuarantineListOptions): Promise<readonly QuarantineRow[]>;
  /** Rejects with `payload-key-missing` or `payload-damaged` if the body is sealed and does not open. */
  show(id: string): Promise<QuarantineEntry | undefined>;
  /** As it lies there. */
  stored(id: string): Promise<StoredEntry | undefined>;
  /** The same for many, in the order of their ids; what is not there is left out. */
  storedAll(ids: readonly string[]): Promise<readonly StoredEntry[]>;
  /** What tells entries from others of the same number in another table. */
  marks(ids: readonly string[]): Promise<readonly EntryMark[]>;
  groups(filter: QuarantineFilter, limit: number): Promise<readonly QuarantineGroup[]>;
  count(filter: QuarantineFilter): Promise<number>;
  /** All entries of an identity, oldest first. */
  history(digest: string): Promise<readonly QuarantineRow[]>;

  /**
   * Decides on one entry: compares and sets its status. Resolves with the decision's number, or with the error that says
   * why not: `entry-missing`, `already-decided`, `already-applied`, `already-pending`, `decision-needs`.
   */
  decide(kind: DecisionOnEntries, id: string, decider: Decider): Promise<string | InboxError>;
  /** `decide` with another body, or an identity. */
  repair(id: string, request: RepairRequest, decider: Decider): Promise<string | InboxError>;
  /**
   * Records a decision on all entries that fit, if there are as many as expected; nothing is recorded otherwise. Then
   * call `carryOn` until it is finished.
   */
  decideMany(
    kind: DecisionOnEntries,
    filter: QuarantineFilter,
    decider: Decider,
    expected: number,
  ): Promise<BulkAnswer>;
  /** One batch more of a decision on many. Any number of processes may do it; a killed one leaves it to be carried on. */
  carryOn(decisionId: string): Promise<BulkDecision | undefined>;
  /** Decisions on many that have batches left, oldest first. A purge has none: it is asked for again. */
  unfinished(): Promise<readonly BulkDecision[]>;
  /** The last decisions on many, newest first. */
  decisions(limit: number): Promise<readonly BulkDecision[]>;
  /**
   * Removes entries that were decided on longer ago than this, with their payloads: at most 1,000, and resolves with how
   * many. The decisions stay. With `decisionId` the audit row counts them, and is finished when none was left.
   */
  purge(decidedBeforeMs: number, consumer: string | undefined, decisionId?: string): Promise<number>;
  /** How many entries `purge` would remove in all. */
  countPurgeable(decidedBeforeMs: number, consumer: string | undefined): Promise<number>;
  /** The audit row of a purge, written before it: a purge that dies on the way has left how far it came. */
  recordPurge(decider: Decider, filter: string, matched: number): Promise<string>;
  import(entry: ImportedEntry): Promise<ImportOutcome>;
  /** The same for many, in their order: all or none. */
  importAll(entries: readonly ImportedEntry[]): Promise<readonly ImportOutcome[]>;
}
