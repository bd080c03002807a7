import type { Fingerprint, FingerprintMode } from "../message/fingerprint.ts";
import type { RecordPosition } from "./log.ts";
import type { Lease } from "./pending.ts";
import type { Claim } from "./store.ts";

/** A message on its way to quarantine. Everything in it is hostile: any length, any character. */
export interface QuarantineInsert {
  /** The checked identity, with its digest; `undefined` where none could be read. */
  readonly identity: Omit<Claim, "fingerprint"> | undefined;
  /** What came in place of an identity, any type. */
  readonly rawIdentity: unknown;
  readonly key: string | undefined;
  readonly type: string | undefined;
  /** When the producer says it happened. */
  readonly time?: Date | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array | null;
  readonly fingerprint: Fingerprint;
  readonly code: string;
  readonly error: string;
  /** Failed attempts that counted. */
  readonly attempts: number;
  /** Where it was pending: it leaves there in the same transaction, and keeps its place in the order of arrival. */
  readonly pending?: { readonly lease: Lease; readonly position: string } | undefined;
  /** Where it comes from a log with a cursor, which moves past it in the same transaction. */
  readonly position?: RecordPosition | undefined;
  /** Whether later messages of its key wait for the decision. */
  readonly blocking?: boolean | undefined;
}

/**
 * `open`: it waits for a decision. `retried`: it was given back to be handled, as it is. `repaired`: likewise, with
 * another payload or an identity. `discarded`: it will not be handled.
 */
export type QuarantineStatus = "open" | "retried" | "repaired" | "discarded";

/** What was decided on an entry. Times are the database's. */
export interface EntryDecision {
  /** The decision's number; many entries may share one. */
  readonly id: string;
  readonly kind: "retry" | "apply" | "repair" | "discard";
  readonly by: string;
  readonly why: string;
  readonly at: Date;
}

/** A line of `inbox quarantine list`. Times are the database's. */
export interface QuarantineRow {
  /** A number, as text: it may pass 2^53. */
  readonly id: string;
  readonly status: QuarantineStatus;
  readonly consumer: string;
  /** `undefined` where no identity could be read. */
  readonly tenant: string | undefined;
  readonly producer: string | undefined;
  readonly messageId: string | undefined;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly code: string;
  readonly error: string;
  /** Names the failures that look alike: see `groups`. */
  readonly group: string;
  readonly attempts: number;
  /** How often this body came. */
  readonly deliveries: number;
  readonly payloadBytes: number;
  readonly firstFailedAt: Date;
  readonly lastFailedAt: Date;
  readonly handlerVersion: string;
  /** The earlier entry of the same message, which was retried or repaired and failed again. */
  readonly againOf: string | undefined;
  /** `undefined` while it is open. */
  readonly decision: EntryDecision | undefined;
}

/** One entry, whole. */
export interface QuarantineEntry extends QuarantineRow {
  readonly rawIdentity: string | undefined;
  readonly time: Date | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** `null` for a message without a body. */
  readonly payload: Uint8Array | null;
  readonly fingerprint: string;
  readonly fingerprintMode: FingerprintMode;
  /** The name of the key its body is sealed with; `undefined` where it is stored as it came. */
  readonly keyId: string | undefined;
  /** What a repair made of it. */
  readonly repair: RepairedAs | undefined;
}

/** What a repair gave back to be handled in place of the entry's own body. */
export interface RepairedAs {
  readonly tenant: string;
  readonly producer: string;
  readonly messageId: string;
  readonly payload: Uint8Array | null;
  readonly fingerprint: string;
  /** As the entry's. */
  readonly keyId: string | undefined;
}

/** Which entries. All that is given must fit; nothing given means all open ones. */
export interface QuarantineFilter {
  readonly consumer?: string | undefined;
  readonly code?: string | undefined;
  /** Of this group: see `groups`. */
  readonly group?: string | undefined;
  readonly tenant?: string | undefined;
  readonly producer?: string | undefined;
  readonly messageId?: string | undefined;
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  /** Failed last at this time or later. */
  readonly since?: Date | undefined;
  /** Failed last before this time. */
  readonly until?: Date | undefined;
  /** Occurs in the error, whatever its case. */
  readonly text?: string | undefined;
  /** Default `open`. */
  readonly status?: QuarantineStatus | "all" | undefined;
}

export interface QuarantineListOptions extends QuarantineFilter {
  /** Entries after this one, in the list's order. */
  readonly after?: string | undefined;
  /** Default `newest`. */
  readonly first?: "newest" | "oldest" | undefined;
  /** Default 100, at most 1,000. */
  readonly limit?: number | undefined;
}

/** Failures of one consumer that look alike: same code, same error but for what is different in each message. */
export interface QuarantineGroup {
  readonly consumer: string;
  readonly code: string;
  readonly group: string;
  /** The error with numbers, ids and quoted texts masked. */
  readonly error: string;
  readonly count: number;
  readonly firstFailedAt: Date;
  readonly lastFailedAt: Date;
  /** The oldest entry, as an example. */
  readonly sample: string;
}
