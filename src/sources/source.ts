import type { Received } from "../message/message.ts";

/** A log, and the number under which a process owns it. */
export interface LogPosition {
  readonly log: string;
  readonly epoch: string;
  /** With the cursor strategy: the record's place, which stands for the claim. Records of one log are delivered in order. */
  readonly record?: LogRecord;
}

/** A record's place in its log. */
export interface LogRecord {
  readonly offset: bigint;
  /** Of the record that was delivered before it; `undefined` for the first of a log that nothing was applied of. */
  readonly previous: bigint | undefined;
}

/** Which log it is, and what a person has agreed to. */
export interface LogAsk {
  /** Where the log lives; `undefined` where nobody tells. */
  readonly cluster: string | undefined;
  /** Names this incarnation of the log; holds no `@`. */
  readonly incarnation: string;
  /** The part of the log: its partition. */
  readonly part: string;
  /** Where reading would begin if nothing is known yet; `undefined`: at the log's beginning. */
  readonly begin: bigint | undefined;
  readonly accept: readonly string[];
}

/** A log taken with its cursor. `changed` and `ended`: not taken, until a person agrees to `accept`. */
export type TakenCursor =
  | {
      readonly kind: "taken";
      readonly position: LogPosition;
      /** Names the log's records for ever. */
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

/** One hand-over of one message by a source. The same object comes back when it is settled. */
export interface Delivery {
  readonly received: Received;
  /** A hint only: the source says or guesses that it handed this message over before. Never used to decide "new". */
  readonly redelivered: boolean;
  /** When the broker took it in, in milliseconds since 1970, where it tells: a message older than memory is `late`. */
  readonly brokerTime?: number | undefined;
  /** As `Intake.takeLog` gave it: the message is applied only while this process owns the log it comes from. */
  readonly position?: LogPosition;
}

/** How a delivery ends. Exactly one of these, once, for each delivery. */
export type Settlement =
  /** `quarantined`: not applied, its body is kept in quarantine; for a broker that can be told so. */
  | { readonly kind: "ack"; readonly quarantined?: true }
  /** Deliver it again, not before `afterMs` milliseconds. */
  | { readonly kind: "retry"; readonly afterMs: number }
  /** Never started: give it back as if it had not been handed over. */
  | { readonly kind: "release" };

/** What the runner does with what it gets: a source sizes its prefetch by it and warns where it will not fit the broker. */
export interface RunFacts {
  readonly consumer: string;
  /** Transactions side by side. */
  readonly lanes: number;
  /** Most deliveries in hand; a prefetch above it is waste. */
  readonly maxInHand: number;
  /** Most payload bytes in hand. */
  readonly maxInHandBytes: number;
  /** How long one handler may take, in milliseconds. */
  readonly handlerTimeoutMs: number;
  /** How often deliveries in hand are extended, in milliseconds. */
  readonly extendEveryMs: number;
}

/** How long a broker keeps messages, and so how late it can send one again. Durations in milliseconds; `Infinity` is for ever. */
export interface Kept {
  /** For warnings: `sqs:orders`. */
  readonly name: string;
  readonly retentionMs: number;
  /** Where messages go that were delivered too often, to be sent again from there. */
  readonly deadLetter?: { readonly name: string; readonly retentionMs: number } | undefined;
}

/** What a source sees of the runner. */
export interface Intake {
  readonly facts: RunFacts;
  /**
   * Hands deliveries over, in the source's order. Resolves when there is room for more: a source that waits for it
   * before it reads on needs no limit of its own. Never rejects.
   */
  deliver(deliveries: readonly Delivery[]): Promise<void>;
  /** Tells people of something that is not as it should be; said once for each text. */
  warn(message: string): void;
  /**
   * Tells how long the broker keeps messages, before anything is received. Left out where nobody asks: identities are kept for
   * ever, or the run was told. Throws `window-too-short` where identities are
   * not kept as long and the run is to refuse that; then the source does not start.
   */
  readonly kept?: ((kept: readonly Kept[]) => void) | undefined;
  /**
   * Makes this process the owner of a log, for a source that shall never be overtaken by the owner before: what that one has
   * under way is committed when this resolves, or never will be. Rejects if the database is away.
   */
  takeLog?(log: string): Promise<LogPosition>;
  /** `takeLog` for a source whose records are told apart by their place: with how far the log is applied. */
  takeCursor?(log: string, ask: LogAsk): Promise<TakenCursor>;
  /**
   * Remembers that a log ends before what is applied, until a person agrees; resolves with what agrees to it, `undefined` if
   * nothing behind this end is applied.
   */
  markEnd?(
    position: LogPosition,
    part: string,
    end: bigint,
  ): Promise<{ readonly accept: string | undefined }>;
  /** The source has ended: with nothing more to deliver, or with an error it cannot mend. */
  end(error?: Error): void;
}

/**
 * A source delivers and settles; lanes, order, back-pressure, circuit breaking and shutdown are the runner's. The
 * runner calls, in this order: `start` once, `settle` any number of times, `stop` once (no `deliver` after it
 * resolves), `settle` for what was in hand, `close` once.
 */
export interface Source {
  /** Names the source in logs, metrics and `inbox explain`: `ndjson:orders.ndjson`, `kafka:payments`. */
  readonly name: string;
  /** Starts delivering. Rejects if the source cannot be reached at all. */
  start(intake: Intake): Promise<void>;
  /** Settles deliveries of this source. A failure means a redelivery, nothing worse: the source reports, the runner goes on. */
  settle(settlements: readonly (readonly [Delivery, Settlement])[]): Promise<void>;
  /** Stops intake; what is in hand stays settleable. Twice is harmless. */
  stop(): Promise<void>;
  /** Flushes settlements and closes. Twice is harmless. */
  close(): Promise<void>;
  /** Keeps deliveries in hand from being handed to somebody else, where the broker has such a limit. */
  extend?(deliveries: readonly Delivery[]): Promise<void>;
  /**
   * How many messages wait at the broker for this consumer, in hand or not handed over yet; `undefined` if it cannot be
   * told now. Read for `run.health()` only, at most about once a second.
   */
  lag?(): Promise<number | undefined>;
}
