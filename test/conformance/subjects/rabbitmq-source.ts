import type { Source } from "../../../src/sources/source.ts";
import { rabbitmq, type RabbitmqClient } from "../../../src/sources/rabbitmq/rabbitmq.ts";

/** What a consumer process makes its source of. */
export interface RabbitmqConfig {
  /** Through the proxy where the case cuts lines. */
  readonly url: string;
  readonly queue: string;
  readonly type: QueueType;
  readonly ackTimeoutMs?: number;
}

export type QueueType = "classic" | "quorum";

/** The source as a user makes it. */
export function makeRabbitmqSource(config: RabbitmqConfig, client: RabbitmqClient): Source {
  const { queue, type, ackTimeoutMs: acknowledgementTimeoutMs } = config;
  return rabbitmq({
    ...{ client, queue, key: { header: "key" }, reconnectDelayMs: 50, maxReconnectDelayMs: 1_000 },
    queueFacts: { type, acknowledgementTimeoutMs },
  });
}
