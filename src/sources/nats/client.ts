import type { StreamConfig } from "./stream-kept.ts";

/** The part of a `JetStreamClient` of `@nats-io/jetstream` that is used: `jetstream(connection)`. */
export interface NatsJetStream {
  readonly consumers: { get(stream: string, consumer: string): Promise<NatsConsumer> };
  /** For how long the stream is kept; `false`: does not ask first whether JetStream is there. */
  jetstreamManager?(checkApi?: boolean): Promise<{
    readonly streams: { info(stream: string): Promise<{ readonly config: StreamConfig }> };
  }>;
}

/** The part of a pull consumer that is used. */
export interface NatsConsumer {
  info(cached?: boolean): Promise<NatsConsumerInfo>;
  fetch(options: { max_messages: number; expires: number }): Promise<NatsPull>;
}

/** The messages of one pull, as they come. */
export interface NatsPull extends AsyncIterable<NatsMessage> {
  close(): Promise<unknown>;
}

export interface NatsConsumerInfo {
  readonly num_pending: number;
  readonly num_ack_pending: number;
  readonly config: {
    readonly ack_policy?: string;
    /** In nanoseconds. */
    readonly ack_wait?: number;
    readonly backoff?: readonly number[];
    readonly max_deliver?: number;
    readonly durable_name?: string;
    readonly deliver_subject?: string;
  };
}

/** The part of a JetStream message that is used. */
export interface NatsMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly redelivered: boolean;
  readonly headers?: Iterable<[string, string[]]> | undefined;
  /** When the stream took it in, in nanoseconds since 1970. */
  readonly timestampNanos?: bigint;
  ackAck(options?: { timeout: number }): Promise<boolean>;
  nak(millis?: number): void;
  term(): void;
  working(): void;
}
