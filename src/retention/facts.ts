/** What a broker can send again, as it was asked or as you know it. Durations in milliseconds; `Infinity` is for ever. */
export interface BrokerFacts {
  /** For tables and warnings: `sqs:orders`. */
  readonly name: string;
  /** `log`: what was read can be read again (Kafka, JetStream, RabbitMQ streams). `queue`: what was acknowledged is gone. */
  readonly kind: "queue" | "log";
  /** How long a message is kept at most, from when the broker got it. */
  readonly retentionMs: number;
  /** How long after a delivery that was not acknowledged the message comes again, at most. Default 0. */
  readonly redeliverAfterMs?: number | undefined;
  /** Where messages go that were delivered too often or grew too old; `undefined`: nowhere, as far as the broker tells. */
  readonly deadLetter?: DeadLetterFacts | undefined;
}

/** A dead-letter queue: what lies there may have been applied, if only its acknowledgements were lost. */
export interface DeadLetterFacts {
  readonly name: string;
  readonly retentionMs: number;
  /** Whether its clock starts anew when a message arrives there. SQS counts on from the first queue, unless it is FIFO. */
  readonly startsAnew: boolean;
}

/** What only you know. Durations in milliseconds. What is left out is listed as not declared, and decides nothing. */
export interface DeclaredFacts {
  /** The longest time the consumer, or its database, may be down. */
  readonly longestOutageMs?: number | undefined;
  /** How far back a consumer of a log will ever be rewound. Default: as far as the log goes. */
  readonly maxRewindMs?: number | undefined;
  /** How long dead letters may lie before they are redriven, where that is less than the queue keeps them. */
  readonly maxRedriveMs?: number | undefined;
  /** How long a producer repeats a send that it has no answer for. */
  readonly producerRetryMs?: number | undefined;
  /** How far back an outbox may be sent again, by its relay or by hand. */
  readonly outboxReplayMs?: number | undefined;
  /** How long partners send a document again: 7 to 30 days in EDI. */
  readonly partnerRetryMs?: number | undefined;
  /** The age of the oldest backup that the consumer's database may be restored from. */
  readonly restoreMs?: number | undefined;
  /** The same for the producer's database, whose outbox then forgets what it sent. */
  readonly producerRestoreMs?: number | undefined;
  /** How far back replays are planned: from files, an archive, another inbox. */
  readonly plannedReplayMs?: number | undefined;
  /** How old a signed request may be that is let in. */
  readonly requestToleranceMs?: number | undefined;
}

/** What the ledger costs, as it was measured. */
export interface MeasuredFacts {
  /** Heap and index, for one identity. */
  readonly bytesPerRow: number;
  readonly rowsPerDay: number;
}

export interface RetentionFacts {
  /** All that the consumer reads from. */
  readonly brokers: readonly BrokerFacts[];
  readonly declared?: DeclaredFacts | undefined;
  readonly measured?: MeasuredFacts | undefined;
  /** Added to what decides, in milliseconds. Default 86,400,000 (a day). */
  readonly marginMs?: number | undefined;
}
