/** Where a delivery stands in a log that one owner at a time reads. */
export interface LogPosition {
  /** Names the log within the consumer: `kafka:payments/3`. */
  readonly log: string;
  /** The owner's number, as text. Nothing is committed under a number that is not the log's highest. */
  readonly epoch: string;
  /** With the cursor strategy: the record's place. It stands for the claim. */
  readonly record?: LogRecord;
}

/** A record's place in its log. */
export interface LogRecord {
  readonly offset: bigint;
  /** Of the record that was read before it; `undefined` for the first of a log that nothing was applied of. */
  readonly previous: bigint | undefined;
}

/** A position whose record's place is known: with the cursor strategy. */
export type RecordPosition = LogPosition & { readonly record: LogRecord };

/** A log in the hands of a new owner. */
export interface TakenLog {
  readonly epoch: string;
}

/** How far a log is applied, in the transaction that asks. */
export interface FollowedLog {
  readonly log: string;
  readonly epoch: string;
  /** Everything up to this offset is applied, stored or in quarantine; `undefined`: nothing yet. */
  readonly applied: bigint | undefined;
}

/** Moves a log's cursor to this offset. */
export interface LogMove {
  readonly log: string;
  readonly epoch: string;
  readonly offset: bigint;
}

/** Which log it is, as who reads it knows. An offset means something in one incarnation of one log only. */
export interface LogAsk {
  /** Where the log lives; `undefined` where nobody tells. */
  readonly cluster: string | undefined;
  /** Names this incarnation of the log; another log of the same name has another one. Holds no `@`. */
  readonly incarnation: string;
  /** The part of the log: its partition. */
  readonly part: string;
  /** Where reading would begin if nothing is known yet; `undefined`: at the log's beginning. */
  readonly begin: bigint | undefined;
  /** What a person has agreed to: a new incarnation's name, or `INCARNATION/PART@OFFSET` for a log that lost its end. */
  readonly accept: readonly string[];
}

/**
 * A log in the hands of a new owner that follows a cursor. `changed`: another log stands under this name. `ended`: it lost its
 * end at an offset below what is applied. Of these two nobody became the owner; `accept` is what agrees to it.
 */
export type TakenCursor =
  | {
      readonly kind: "taken";
      readonly epoch: string;
      /** With what was agreed to: names the records for ever. */
      readonly incarnation: string;
      readonly applied: bigint | undefined;
    }
  | {
      readonly kind: "changed";
      readonly known: string;
      readonly applied: bigint | undefined;
      readonly accept: string;
    }
  | {
      readonly kind: "ended";
      readonly end: bigint;
      readonly applied: bigint | undefined;
      readonly accept: string;
    };

/** Who owns which log: the fence between an old owner and the new one. */
export interface LogStore {
  /**
   * Makes the caller the log's owner. Waits until transactions of the owner before have ended: what they had under way is
   * committed by then, or never will be.
   */
  take(consumer: string, log: string): Promise<TakenLog>;
  /** The same for a log whose records are applied by its cursor. */
  takeCursor(consumer: string, log: string, ask: LogAsk): Promise<TakenCursor>;
  /**
   * Remembers that a log ends before what is applied, until a person agrees; resolves with what agrees, `undefined` if nothing
   * behind this end is applied. Rejects with `log-lost`.
   */
  markEnd(
    consumer: string,
    position: LogPosition,
    part: string,
    end: bigint,
  ): Promise<{ readonly accept: string | undefined }>;
}
