import { streamKept, type StreamConfig } from "../sources/nats/stream-kept.ts";
import type { BrokerFacts } from "./facts.ts";

/** The part of a `JetStreamManager` of `@nats-io/jetstream` that is used: `await jetstreamManager(connection)`. */
export interface JetStreamManagerLike {
  readonly streams: { info(stream: string): Promise<{ readonly config: StreamConfig }> };
  readonly consumers: {
    info(stream: string, consumer: string): Promise<{ readonly config: ConsumerConfigLike }>;
  };
}

interface ConsumerConfigLike {
  /** In nanoseconds. */
  readonly ack_wait?: number;
  readonly backoff?: readonly number[];
}

const nanosecondsAMillisecond = 1_000_000;

/**
 * What JetStream keeps of a stream. A stream with the retention `limits` is a log that can be read again from its
 * beginning; of the others a message goes when it is acknowledged.
 */
export async function askJetStream(
  manager: JetStreamManagerLike,
  stream: string,
  consumer?: string,
): Promise<BrokerFacts> {
  const { config } = await manager.streams.info(stream);
  const waits =
    consumer === undefined ? [] : waitsOf((await manager.consumers.info(stream, consumer)).config);
  return {
    name: `nats:${stream}`,
    ...streamKept(config),
    redeliverAfterMs: Math.max(0, ...waits) / nanosecondsAMillisecond,
  };
}

const waitsOf = ({ ack_wait: wait, backoff }: ConsumerConfigLike): readonly number[] => [
  wait ?? 0,
  ...(backoff ?? []),
];
