/** An effect outside the database that a transaction asks for. */
export interface EffectInput {
  /**
   * Names the effect at its destination, together with producer and tenant: the same id is the same effect, sent once,
   * and known by it at the other end. 1 to 1,024 bytes. Let it follow from what is done (`receipt/${order}`), so that a
   * transaction that runs again asks for the same.
   */
  readonly id: string;
  /** The name of the destination as the relay knows it, 1 to 128 bytes. */
  readonly destination: string;
  /** What is sent. A string is sent as UTF-8, `null` is an effect without a body. Either this or `json`. */
  readonly payload?: Uint8Array | string | null | undefined;
  /** What is sent, written as JSON with the content type `application/json`. Either this or `payload`. */
  readonly json?: unknown;
  /** Effects of one key and destination are sent in the order they were asked for, one after another. */
  readonly key?: string | undefined;
  readonly type?: string | undefined;
  /** When it happened. Sent as the CloudEvents attribute `time`. */
  readonly time?: Date | undefined;
  /** Sent with it. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default `""`. */
  readonly tenant?: string | undefined;
  /**
   * Not to be sent before so many milliseconds have gone by since it was asked for, by the database's clock. Later
   * effects of its key wait for it.
   */
  readonly delayMs?: number | undefined;
  /** Not to be sent when so many milliseconds have gone by since it was asked for. Default: it is never too late. */
  readonly lifetimeMs?: number | undefined;
}

/** What became of a call of `send`. */
export interface SentEffect {
  readonly id: string;
  /** False: the same effect was asked for before, and nothing was added. */
  readonly fresh: boolean;
}
