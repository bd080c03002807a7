/** What JetStream answers to a publish. */
export interface NatsPublishAnswer {
  readonly stream: string;
  readonly seq: number;
  readonly duplicate?: boolean | undefined;
}

/**
 * Whether a message is in its stream, stored by this publish or by an earlier one of the same `Nats-Msg-Id`. An answer
 * with `duplicate: true` is a success: publishing again, or under another id, would not make a consumer see it sooner,
 * since a redelivery is the consumer's own affair.
 */
export const isPublished = (answer: NatsPublishAnswer): boolean =>
  answer.seq > 0 || answer.duplicate === true;
