// Known to every copy of this package in a process, as a handler's words are.
const mark: unique symbol = Symbol.for("transactional-inbox.destination-answer") as never;

/** The destination has it, and said so. */
export interface Sent {
  readonly [mark]: "sent";
  /** What it answered, kept in the record of the attempt: a text, or anything that JSON can write. Cut to 4 KiB. */
  readonly result?: unknown;
  /** Its status, where it has such. */
  readonly status?: number | undefined;
}

/** It is to be sent again, under the same id. */
export interface Again {
  readonly [mark]: "again";
  readonly error: unknown;
  /** Whether it may have been taken all the same: a timeout, a connection that was reset. */
  readonly ambiguous: boolean;
  /** Whose fault it is. What is the destination's never counts against the effect. */
  readonly fault: "effect" | "destination";
  /** The destination asked for a pause of so many milliseconds, for everything that goes there. */
  readonly pauseMs?: number | undefined;
  readonly status?: number | undefined;
}

/** It will never be taken as it is. */
export interface Refused {
  readonly [mark]: "refused";
  readonly error: unknown;
  readonly status?: number | undefined;
}

/** What a destination says of one effect. */
export type Answer = Sent | Again | Refused;

/** The destination has confirmed it. */
export const sent = (result?: unknown, status?: number): Sent => ({ [mark]: "sent", result, status });

/** Send it again later. By default the effect is at fault, and it is certain that it was not taken. */
export const again = (error: unknown, how: Partial<Omit<Again, typeof mark | "error">> = {}): Again => ({
  ...{ [mark]: "again", error, ambiguous: false, fault: "effect" },
  ...how,
});

/** It is refused for good: it goes to quarantine. */
export const refused = (error: unknown, status?: number): Refused => ({ [mark]: "refused", error, status });

export const kindOf = (answer: Answer): "sent" | "again" | "refused" => answer[mark];

export const isAnswer = (value: unknown): value is Answer =>
  typeof value === "object" && value !== null && mark in value;

export const isSent = (answer: Answer): answer is Sent => answer[mark] === "sent";
export const isAgain = (answer: Answer): answer is Again => answer[mark] === "again";
export const isRefused = (answer: Answer): answer is Refused => answer[mark] === "refused";
