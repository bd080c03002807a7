/** An effect as a record. */
export interface KafkaRecord {
  readonly topic: string;
  readonly key: Buffer | null;
  /** `null` is a tombstone. */
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string>>;
  /** About so much room it takes in a request. */
  readonly bytes: number;
}

/** Why a record was not confirmed. */
export interface SendFailure {
  readonly error: unknown;
  /**
   * `too-large`: it, or the batch it was in. `invalid`: the broker will never take it. `forbidden`: no rights to the topic, or
   * its name is none. `no-topic`: there is none now. `not-sent`: it has not left this process. `behind`: not tried,
   * since one before it that has its key was not. `unclear`: it may be there.
   */
  readonly kind: "too-large" | "invalid" | "forbidden" | "no-topic" | "not-sent" | "behind" | "unclear";
}

/**
 * A Kafka client as the destination needs it; `confluentProducer`, `kafkajsProducer` and `platformaticProducer` make one.
 * Records are confirmed by all replicas that are in sync (`acks=all`).
 */
export interface KafkaProducer {
  readonly name: string;
  /** Resolves when records can be sent. Costs nothing while they can. */
  connect(): Promise<void>;
  /**
   * Sends records of one topic, those of a partition in their order. Answers by position; `undefined` is a confirmation.
   * Never rejects.
   */
  send(records: readonly KafkaRecord[]): Promise<readonly (SendFailure | undefined)[]>;
  /** It may be connected again. */
  close(): Promise<void>;
}
