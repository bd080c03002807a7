import type { InboxError } from "../errors.ts";
import type { AttemptOutcome } from "./outbox.ts";
import type { StoredBody } from "./protection.ts";
import type { EntryDecision, QuarantineStatus } from "./quarantine-entry.ts";
import type { BulkAnswer, BulkDecision, Decider } from "./quarantine-store.ts";

/** One time that an effect was set aside for a person. Times are the database's. */
export interface RefusedEffect {
  /** A number, as text. An effect that is refused again has another entry with another number. */
  readonly id: string;
  readonly status: QuarantineStatus;
  readonly destination: string;
  readonly tenant: string;
  readonly producer: string;
  readonly effectId: string;
  readonly key: string | undefined;
  readonly type: string | undefined;
  /** `destination-refused`, `attempts-exhausted`, `crashed`. */
  readonly code: string;
  readonly error: string;
  /** Names the refusals that look alike: see `groups`. */
  readonly group: string;
  /** Attempts to send it until then. */
  readonly attempts: number;
  readonly payloadBytes: number;
  /** Its place in the order in which effects were asked for: a number, as text. */
  readonly position: string;
  readonly askedAt: Date;
  readonly refusedAt: Date;
  /** Since then, in milliseconds by the database's clock. */
  readonly refusedMs: number;
  /** Whether later effects of its key wait for the decision. */
  readonly holdsKey: boolean;
  /** The entry before of the same effect, which was retried or repaired. */
  readonly againOf: string | undefined;
  /** `undefined` while it is open. */
  readonly decision: EntryDecision | undefined;
}

/** A refused effect as it lies in the tables: what is sealed stays sealed. */
export interface StoredRefusedEffect extends RefusedEffect {
  readonly digest: string;
  readonly time: Date | undefined;
  /** The body that was refused. `undefined`: it was sent since, or forgotten. */
  readonly body: StoredBody | undefined;
  /** What a repair gave back to be sent; `undefined` unless there was one, and once it is forgotten. */
  readonly repaired: StoredBody | undefined;
}

/** Which refused effects. All that is given must fit; nothing given means all open ones. */
export interface RefusedFilter {
  readonly destination?: string | undefined;
  readonly code?: string | undefined;
  /** Of this group: see `groups`. */
  readonly group?: string | undefined;
  readonly tenant?: string | undefined;
  readonly producer?: string | undefined;
  readonly effectId?: string | undefined;
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  /** Refused at this time or later. */
  readonly since?: Date | undefined;
  /** Refused before this time. */
  readonly until?: Date | undefined;
  /** Occurs in the error, whatever its case. */
  readonly text?: string | undefined;
  /** Default `open`. */
  readonly status?: QuarantineStatus | "all" | undefined;
}

export interface RefusedListOptions extends RefusedFilter {
  /** Entries after this one, in the list's order. */
  readonly after?: string | undefined;
  /** Default 100, at most 1,000. */
  readonly limit?: number | undefined;
}

/** Refusals by one destination that look alike: same code, same error but for what is different in each effect. */
export interface RefusedGroup {
  readonly destination: string;
  readonly code: string;
  readonly group: string;
  /** The error with numbers, ids and quoted texts masked. */
  readonly error: string;
  readonly count: number;
  readonly firstRefusedAt: Date;
  readonly lastRefusedAt: Date;
  /** Since the first of them, in milliseconds by the database's clock. */
  readonly oldestMs: number;
  /** The oldest entry, as an example. */
  readonly sample: string;
}

/**
 * `ready`: may be sent now. `scheduled`: may be sent from `dueAt` on. `behind`: an earlier effect of its key is not
 * settled. `quarantined`: refused, and its key waits for the decision. `aside`: refused, and its key goes on.
 */
export type EffectState = "ready" | "scheduled" | "behind" | "quarantined" | "aside";

/** An effect that is not sent yet. Times are the database's. */
export interface WaitingEffect {
  readonly position: string;
  readonly destination: string;
  readonly tenant: string;
  readonly producer: string;
  readonly effectId: string;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly state: EffectState;
  readonly askedAt: Date;
  /** Since it was asked for, in milliseconds by the database's clock. */
  readonly waitedMs: number;
  readonly dueAt: Date | undefined;
  readonly expiresAt: Date | undefined;
  readonly attempts: number;
  /** Of the last attempt that was not confirmed. */
  readonly code: string | undefined;
  readonly error: string | undefined;
  readonly payloadBytes: number;
}

export interface WaitingFilter {
  readonly destination?: string | undefined;
  readonly state?: EffectState | undefined;
  readonly tenant?: string | undefined;
  readonly producer?: string | undefined;
  readonly effectId?: string | undefined;
  readonly key?: string | undefined;
}

export interface WaitingListOptions extends WaitingFilter {
  /** Effects behind this position. */
  readonly after?: string | undefined;
  /** Default 100, at most 1,000. */
  readonly limit?: number | undefined;
}

/** How one destination does, as far as the database knows. Ages are milliseconds by its clock. */
export interface DestinationStatus {
  readonly destination: string;
  /** Effects that are not sent, refused ones aside. */
  readonly waiting: number;
  /** Those of them that may be sent now. */
  readonly due: number;
  /** Those that wait for their time: a delay, or the next attempt. */
  readonly scheduled: number;
  /** Those that wait behind another one of their key. */
  readonly behind: number;
  /** Lanes of 64 that relays hold now. */
  readonly lanesHeld: number;
  /** As the relays told last. */
  readonly inHand: number;
  readonly refused: number;
  /** Age of the oldest effect that waits; `undefined` if none does. */
  readonly oldestMs: number | undefined;
  /** Age of the oldest open refusal. */
  readonly oldestRefusedMs: number | undefined;
  /** Relays that told of themselves in the last 30 seconds. */
  readonly relays: number;
  /** Those of them that give the destination a pause. */
  readonly paused: number;
  /** Until the first of those tries again. */
  readonly pausedForMs: number | undefined;
  /** Since the last confirmation that a relay told of; `undefined` where none did. */
  readonly lastSentMs: number | undefined;
  /** What the destination said last when it failed, as a relay told; `undefined` while no relay has seen it fail. */
  readonly lastError: string | undefined;
}

/** One attempt, or one decision that ended an effect. */
export interface EffectAttempt {
  readonly at: Date;
  readonly attempt: number;
  readonly outcome: AttemptOutcome | "discarded";
  readonly code: string | undefined;
  readonly error: string | undefined;
  readonly status: number | undefined;
  /** What the destination answered, as text, cut to 4 KiB. */
  readonly result: string | undefined;
  readonly tookMs: number | undefined;
}

/** An effect by its name, and the digest of that. */
export interface NamedEffect {
  readonly digest: string;
  readonly destination: string;
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
}

/** What the tables hold of one effect. */
export interface EffectFacts {
  readonly digest: string;
  readonly askedAt: Date;
  /** Where it waits; `undefined` once it is settled. */
  readonly waiting: WaitingEffect | undefined;
  /** Oldest first; the last 100. */
  readonly attempts: readonly EffectAttempt[];
  /** Each time it was refused, oldest first. */
  readonly refusals: readonly RefusedEffect[];
}

/** What one relay tells of one of its destinations. */
export interface RelayReport {
  readonly destination: string;
  readonly pausedForMs: number | undefined;
  /** Since its last confirmation, in milliseconds. */
  readonly lastSentMs: number | undefined;
  readonly sent: number;
  readonly failed: number;
  readonly inHand: number;
  readonly lastError: string | undefined;
}

/** What a repair asks the store for. */
export interface EffectRepair {
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array | null;
}

/** Whose turn it is to forget effects. */
export interface ForgetLease {
  readonly token: string;
  /** How long it holds behind each batch, in milliseconds. */
  readonly leaseMs: number;
}

/** A stretch of pages, and what in it is old enough to go. Ages are milliseconds by the database's clock. */
export interface ForgetEffectsBatch {
  readonly firstPage: number;
  readonly pages: number;
  readonly olderThanMs: number;
  readonly lockTimeoutMs: number;
}

/** The outbox for operators. Every method is a transaction of its own. */
export interface OutboxOperatorStore {
  /** Newest first. */
  listRefused(options: RefusedListOptions): Promise<readonly RefusedEffect[]>;
  groups(filter: RefusedFilter, limit: number): Promise<readonly RefusedGroup[]>;
  count(filter: RefusedFilter): Promise<number>;
  showRefused(id: string): Promise<StoredRefusedEffect | undefined>;
  /** A body as it came. Rejects with `payload-key-missing` or `payload-damaged` if it is sealed and does not open. */
  open(
    entry: Pick<StoredRefusedEffect, "destination" | "digest">,
    body: StoredBody,
  ): Promise<{ readonly payload: Uint8Array | null; readonly headers: Readonly<Record<string, string>> }>;
  /** In the order in which they were asked for. */
  listWaiting(options: WaitingListOptions): Promise<readonly WaitingEffect[]>;
  status(): Promise<readonly DestinationStatus[]>;
  /** Effects that were ever asked for; what is not known is left out. */
  facts(effects: readonly NamedEffect[]): Promise<readonly EffectFacts[]>;

  /** Resolves with the decision's number, or with the error that says why not: `entry-missing`, `already-decided`. */
  decide(kind: "retry" | "discard", id: string, decider: Decider): Promise<string | InboxError>;
  repair(id: string, repair: EffectRepair, decider: Decider): Promise<string | InboxError>;
  /** Records a decision on all that fit, if there are as many as expected. Then call `carryOn` until it is finished. */
  decideMany(
    kind: "retry" | "discard",
    filter: RefusedFilter,
    decider: Decider,
    expected: number,
  ): Promise<BulkAnswer>;
  carryOn(decisionId: string): Promise<BulkDecision | undefined>;
  unfinished(): Promise<readonly BulkDecision[]>;
  /** Newest first. */
  decisions(limit: number): Promise<readonly BulkDecision[]>;

  /** Keeps what a relay tells; with `closed` it is the last time. */
  report(relayId: string, reports: readonly RelayReport[], closed: boolean): Promise<void>;
  /** Lanes that were not given back by a relay whose lease is over. */
  abandonedLanes(destination: string): Promise<readonly number[]>;

  /** The right to forget, if nobody else has it. */
  takeForgetting(workerId: string, leaseMs: number): Promise<ForgetLease | undefined>;
  giveForgetting(lease: ForgetLease): Promise<void>;
  /** How many pages the table of all effects' ids has now. */
  effectPages(): Promise<number>;
  /**
   * Forgets effects that are settled, and in whose life nothing has happened for so long: their ids, attempts and
   * refusals. Resolves with how many; `lost`: another worker has the lease, nothing was done.
   */
  forgetEffects(lease: ForgetLease, batch: ForgetEffectsBatch): Promise<number | "lost">;
  /** Removes bodies of refusals that were decided on longer ago than this, at most 1,000. */
  forgetBodies(lease: ForgetLease, olderThanMs: number): Promise<number | "lost">;
}
