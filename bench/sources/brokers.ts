import { installClient } from "../../test/services/install-client.ts";
import { kinds } from "../../test/services/kinds.ts";
import { sharedService } from "../../test/services/shared.ts";
import type { Help } from "../../test/services/way.ts";
import type { BrokerName } from "./fill.ts";
import type { ClientName } from "./job.ts";

export interface Brokers {
  readonly addresses: Readonly<Partial<Record<BrokerName, string>>>;
  /** Why a client cannot be measured here. */
  readonly missing: ReadonlyMap<ClientName, string>;
  /** Ends what was started for the benchmark. */
  close(): Promise<void>;
}

/** The brokers that the clients need, found or started as for the tests. */
export async function openBrokers(clients: ReadonlySet<ClientName>, help: Help): Promise<Brokers> {
  const missing = new Map<ClientName, string>();
  const addresses: Partial<Record<BrokerName, string>> = {};
  const rabbitmq = sharedService("rabbitmq", kinds.rabbitmq);
  const kafka = sharedService("kafka", kinds.kafka);
  const among = (...names: ClientName[]): ClientName[] => names.filter((name) => clients.has(name));

  const ofRabbitmq = among("rabbitmq-client", "amqplib");
  if (ofRabbitmq.length > 0) {
    const found = await rabbitmq.use(help);
    if (found.kind === "there") addresses.rabbitmq = found.facts.url;
    else for (const name of ofRabbitmq) missing.set(name, found.reason);
  }
  const ofKafka = among("confluent", "kafkajs");
  if (ofKafka.length > 0) {
    const found = await kafka.use(help);
    if (found.kind === "there") addresses.kafka = found.facts.brokers.join(",");
    else for (const name of ofKafka) missing.set(name, found.reason);
  }
  if (clients.has("confluent") && !missing.has("confluent")) {
    const reason = await installClient("confluent", { ...help, install: false });
    if (reason !== undefined) missing.set("confluent", reason);
  }
  return {
    addresses,
    missing,
    async close() {
      await rabbitmq.leave();
      await kafka.leave();
    },
  };
}
