/** Where a delivery stands in a log that one owner at a time reads. */
export interface LogPosition {
  /** Names the log within the consumer: `kafka:payments/3`. */
  readonly log: string;
  /** The owner's number, as text. Nothing is committed under a number that is not the log's highest. */
  readonly epoch: string;
}

/** A log in the hands of a new owner. */
export interface TakenLog {
  readonly epoch: string;
}

/** Who owns which log: the fence between an old owner and the new one. */
export interface LogStore {
  /**
   * Makes the caller the log's owner. Waits until transactions of the owner before have ended: what they had under way is
   * committed by then, or never will be.
   */
  take(consumer: string, log: string): Promise<TakenLog>;
}
