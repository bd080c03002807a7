/** Whose identities: of one producer that has a window of its own, or of all others of a consumer. */
export interface RetentionScope {
  readonly consumer: string;
  /** `undefined`: all producers of the consumer that have no row of their own. */
  readonly producer?: string | undefined;
}

/** How long identities are kept, and what has been forgotten, by the clock of the database. */
export interface Retention extends RetentionScope {
  /** In milliseconds; `undefined`: nothing is forgotten any more. */
  readonly windowMs: number | undefined;
  /** Identities applied before this may be gone; `undefined`: none is. */
  readonly forgottenTo: Date | undefined;
  /** A message that was sent before this and is not in the ledger is `late`; `undefined`: none is. */
  readonly horizon: Date | undefined;
}

export interface AdvanceOptions {
  /** By how much a producer's clock may run ahead of the database's, in milliseconds: the horizon is later by that. */
  readonly skewMs: number;
  /** Not beyond this time of the database's clock, though the window would allow it. */
  readonly notAfter?: Date | undefined;
}

/**
 * Windows and horizons. What may be forgotten is decided here and committed before anything is deleted; deleting goes by
 * it (`CleanupStore`). Nothing moves a horizon back.
 */
export interface RetentionStore {
  /** All that is set, or what is set for one consumer. */
  list(consumer?: string): Promise<readonly Retention[]>;
  /**
   * Sets a window. A producer's first window begins with the horizon of its consumer. `undefined`: nothing is forgotten
   * from now on; what is forgotten stays late.
   */
  setWindow(scope: RetentionScope, windowMs: number | undefined): Promise<Retention>;
  /**
   * Moves the horizon to now less the window, and tells all claims. Resolves with what holds then; `undefined` where
   * nothing is set for the scope. Without a window it stays where it is.
   */
  advance(scope: RetentionScope, options: AdvanceOptions): Promise<Retention | undefined>;
}
