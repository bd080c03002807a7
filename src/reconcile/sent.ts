import type { Fingerprint } from "../message/fingerprint.ts";

/** A message that its producer says it sent. */
export interface SentMessage {
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
  /** Where the producer's side knows the payload: then it is compared too. */
  readonly fingerprint: Fingerprint | undefined;
  /** When it was sent, by the producer's clock, in milliseconds since 1970; `undefined` where it is not known. */
  readonly time: number | undefined;
}

/** A span of time; `undefined` is without end on that side. `since` is part of it, `until` is not. */
export interface TimeRange {
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

/** Where the list of what was sent comes from: `sentFile`, `sentQuery`, `sentInbox`, or anything that reads twice alike. */
export interface SentSource {
  /** Names it in errors and reports. */
  readonly name: string;
  /** Begins a reading of one state of it. Rejects if it cannot be read at all. */
  open(): Promise<SentReading>;
}

/** One state of a list, which may be read several times and is the same each time. */
export interface SentReading {
  /**
   * The messages in batches, from the beginning. A source that knows times may leave out what lies outside the range;
   * what it gives anyway is passed over. Throws `sent-refused` for what is no message.
   */
  read(range: TimeRange): AsyncIterable<readonly SentMessage[]>;
  /** Frees what the reading holds. Twice is harmless. */
  close(): Promise<void>;
}

/** What the messages of a list have in common, where they do not say it themselves. */
export interface SentDefaults {
  /** The producer of messages that name none. */
  readonly producer?: string | undefined;
  /** The tenant of messages that name none. Default `""`. */
  readonly tenant?: string | undefined;
}
