/** What a worker tells of a source. */
export interface ProgressReport {
  /** Everything the source had so many milliseconds ago is settled; `undefined`: it has not caught up yet. */
  readonly behindMs: number | undefined;
  /** How often the worker reports, in milliseconds. Without an advance for four times as long, the source stands still. */
  readonly everyMs: number;
}

/**
 * `caught-up`: it makes progress. `standing`: it made none for four reports, or none of its workers runs. `never`: it has
 * not caught up since it was first seen.
 */
export type ProgressState = "caught-up" | "standing" | "never";

/** How far a source of a consumer has come, by the clock of the database. */
export interface SourceProgress {
  readonly consumer: string;
  readonly source: string;
  readonly state: ProgressState;
  /** When it was caught up for the first time; nothing is known of the time before. */
  readonly since: Date | undefined;
  /** Everything it had at this time is settled. */
  readonly caughtUpAt: Date | undefined;
  /** Running workers that report. */
  readonly workers: number;
  /** How long it stood still in all that is remembered, in milliseconds. */
  readonly stoodMs: number;
}

/** The clocks by which the age of identities is counted: they stand still while a source makes no progress. */
export interface ProgressStore {
  report(consumer: string, source: string, workerId: string, report: ProgressReport): Promise<void>;
  /** The worker has no say any more. */
  leave(consumer: string, source: string, workerId: string): Promise<void>;
  list(consumer?: string): Promise<readonly SourceProgress[]>;
  /** Forgets a source that will bring nothing any more; false: it is not known. One that reports again begins anew. */
  retire(consumer: string, source: string): Promise<boolean>;
}
