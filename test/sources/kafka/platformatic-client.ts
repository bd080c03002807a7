import type { TestContext } from "node:test";
import {
  platformatic,
  type KafkaClient,
  type PlatformaticConsumerClass,
} from "../../../src/sources/kafka/kafka.ts";
import { extraClient } from "../../services/kafka-clients.ts";
import type { ClientSettings } from "./support.ts";

/** As a user would make it; `undefined`: it is not here, or not for this Node, and the test was skipped. */
export async function platformaticClient(
  t: TestContext,
  settings: ClientSettings,
): Promise<KafkaClient | undefined> {
  const { brokers, sessionTimeoutMs = 6_000, pollIntervalMs = 20_000, eager = false } = settings;
  const module = (await extraClient(t, "platformatic")) as
    { readonly Consumer: PlatformaticConsumerClass } | undefined;
  if (module === undefined) return undefined;
  return platformatic(module.Consumer, {
    ...{ clientId: "test", bootstrapBrokers: brokers, retryDelay: 100 },
    sessionTimeout: sessionTimeoutMs,
    heartbeatInterval: Math.floor(sessionTimeoutMs / 4),
    rebalanceTimeout: Math.max(sessionTimeoutMs, pollIntervalMs),
    protocols: [eager ? { name: "roundrobin", version: 1 } : { name: "cooperative-sticky", version: 3 }],
  });
}
