/** Whose turn it is to forget. */
export interface CleanupLease {
  readonly workerId: string;
  readonly token: string;
  /** How long it holds behind each batch, in milliseconds. */
  readonly leaseMs: number;
}

/** How far the identities of a consumer, or of one producer of it, may go. */
export interface Cut {
  readonly consumer: string;
  /** `undefined`: all producers without a window of their own. */
  readonly producer: string | undefined;
  readonly windowMs: number;
  /** Sources that make no progress: until they do, nothing is forgotten. */
  readonly waitsFor: readonly string[];
  /** How many sources are known. Without one nothing is forgotten. */
  readonly sources: number;
  /** What was applied before this is older than the window by the clock of every source; `undefined`: nothing yet. */
  readonly before: Date | undefined;
}

/** Pages of the ledger, and how a batch behaves. */
export interface CleanupBatch {
  readonly firstPage: number;
  readonly pages: number;
  /** How long it may wait for a lock, in milliseconds. */
  readonly lockTimeoutMs: number;
}

/** What the row of the table `cleanup` says. */
export interface CleanupState {
  /** The worker that holds the lease now. */
  readonly workerId: string | undefined;
  readonly leasedUntil: Date | undefined;
  readonly startedAt: Date | undefined;
  readonly finishedAt: Date | undefined;
  /** Forgotten by the last sweep, or by the one that runs. */
  readonly identities: number;
  readonly lastError: string | undefined;
}

/**
 * What no batch of identities takes along. `answer`, `attempt`: of identities that are not in the ledger. `discarded`:
 * identities that are not applied and never will be.
 */
export type StrayKind = "answer" | "attempt" | "discarded";

/** Where strays may lie. */
export interface StrayRanges {
  /** No sweep has ended today, by the clock of the database: once a day they are looked for. */
  readonly due: boolean;
  /** Pages of the tables of answers and attempts; behind the last number of the entries in quarantine. */
  readonly ends: Readonly<Record<StrayKind, number>>;
}

/** What of a consumer may go: applied before this. */
export interface DueBefore {
  readonly consumer: string;
  readonly before: Date;
}

/** What should be gone by now and is not, as pages were last looked at. */
export interface Backlog {
  /** By how much the oldest is older than what may go, in milliseconds; 0: nothing is. */
  readonly behindMs: number;
  /** When that was applied, at the earliest. */
  readonly oldest: Date | undefined;
  /** Identities that come in and so have to go, a second; `undefined`: not known yet. */
  readonly neededPerSecond: number | undefined;
  /** Forgotten a second, by the last sweep or the one that runs; `undefined`: there was none. */
  readonly donePerSecond: number | undefined;
}

/** Forgetting in batches. Each method is a transaction of its own on a connection of its own. */
export interface CleanupStore {
  /** The lease, if nobody else holds it and no sweep ended within `notWithinMs`, by the clock of the database. */
  take(workerId: string, leaseMs: number, notWithinMs: number): Promise<CleanupLease | undefined>;
  /** Keeps the lease between batches; false: it is lost. */
  keep(lease: CleanupLease): Promise<boolean>;
  /** Gives it back, with what the sweep came to. */
  give(lease: CleanupLease, error: string | undefined): Promise<void>;
  /** How far every consumer with a window may forget. */
  cuts(): Promise<readonly Cut[]>;
  /** Begins a sweep: the stretches of pages in which something is due, in order, by what horizons say. */
  due(lease: CleanupLease): Promise<readonly number[]>;
  /** Forgets what is due in some pages; `lost`: another worker has the lease, nothing was done. */
  forget(lease: CleanupLease, batch: CleanupBatch): Promise<{ readonly identities: number } | "lost">;
  strays(): Promise<StrayRanges>;
  /** Forgets strays that are older than their window, of some pages or entries; resolves with how many. */
  forgetStrays(
    kind: StrayKind,
    range: { readonly from: number; readonly to: number; readonly lockTimeoutMs: number },
  ): Promise<number>;
  state(): Promise<CleanupState>;
  /** What lies there though it may go. By the notes on pages and the table's statistics, without a scan of the ledger. */
  backlog(due: readonly DueBefore[]): Promise<Backlog>;
  /** Consumers with identities and without a window: by a scan of the ledger. */
  withoutWindow(): Promise<readonly string[]>;
  /** A process tells how long it wants identities kept: the longest of all wins. Resolves with what holds; `undefined`: for ever. */
  declareWindow(consumer: string, windowMs: number): Promise<number | undefined>;
  /** The shortest window that any of the consumer's identities have; `undefined`: all are kept for ever. */
  shortestWindow(consumer: string): Promise<number | undefined>;
}

/** Pages that one row of `ledger_stretch` tells of. */
export const stretchPages = 16;
