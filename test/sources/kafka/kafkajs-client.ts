import type { TestContext } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { kafkajs, type KafkaClient } from "../../../src/sources/kafka/kafka.ts";
import type { ClientSettings } from "./support.ts";

/** As a user would make it. */
export async function kafkajsClient(_: TestContext, settings: ClientSettings): Promise<KafkaClient> {
  const { brokers, sessionTimeoutMs = 6_000, pollIntervalMs = 20_000 } = settings;
  return kafkajs(
    Kafka,
    {
      ...{ clientId: "test", brokers, logLevel: logLevel.NOTHING },
      retry: { initialRetryTime: 50, maxRetryTime: 500 },
    },
    {
      consumer: {
        sessionTimeout: sessionTimeoutMs,
        heartbeatInterval: Math.floor(sessionTimeoutMs / 4),
        rebalanceTimeout: pollIntervalMs,
        // Its end waits for the answer to its last request for records.
        maxWaitTimeInMs: 500,
      },
    },
  );
}
