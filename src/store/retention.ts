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

/** How a rotation may be done. */
export interface RotateOptions {
  /** How long ago the closed generation must have been closed, in milliseconds, before it is forgotten. */
  readonly windowMs: number;
  /** As in `AdvanceOptions`. */
  readonly skewMs: number;
  /** What was closed after this time of the database's clock is not forgotten, though the window would allow it. */
  readonly notAfter?: Date | undefined;
  /**
   * How long to wait for the transactions that have claimed, in milliseconds; claims wait as long behind it. Above the
   * server's `deadlock_timeout` (a second) a vacuum that is in the way is ended.
   */
  readonly lockTimeoutMs: number;
}

/**
 * `rotated`: another generation is open. `too young`: the closed one may not be forgotten yet. `window too short`: a
 * consumer's window is longer than the one given, or for ever. `busy`: the locks were not had in time; try again later.
 */
export type Rotation = "rotated" | "too young" | "window too short" | "busy";

/** What generations there are. */
export interface Generations {
  /** The number of the open one, raised by each rotation; `undefined`: there was none. */
  readonly open: number | undefined;
  /** When the one before it was closed. */
  readonly closedAt: Date | undefined;
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
  /**
   * Forgets whole generations, of all consumers: closes the open one, opens an empty one, and empties the one that was
   * closed before, so identities are kept for one to two windows. Needs the owner of the tables. One transaction: dying in
   * it changes nothing.
   */
  rotate(options: RotateOptions): Promise<Rotation>;
  /**
   * Notes how far the ids of the closed generation reach, so that claims of later ones need not look there: one scan of it,
   * beside claims. False: that is known, nothing is closed, or it could not be done now. Until it is done claims look.
   */
  noteReach(options: Pick<RotateOptions, "lockTimeoutMs">): Promise<boolean>;
  generations(): Promise<Generations>;
}
