import type { TestContext } from "node:test";
import { Kafka, logLevel, Partitioners } from "kafkajs";
import {
  confluentProducer,
  type ConfluentProducerModule,
} from "../../../src/relay/destinations/kafka/confluent.ts";
import { kafkajsProducer } from "../../../src/relay/destinations/kafka/kafkajs.ts";
import {
  platformaticProducer,
  type PlatformaticProducerClass,
} from "../../../src/relay/destinations/kafka/platformatic.ts";
import type { KafkaProducer } from "../../../src/relay/destinations/kafka/producer.ts";
import { extraClient } from "../../services/kafka-clients.ts";

/** The clients, each as a user would make it; `undefined`: it is not here, and the test was skipped. */
export const producers: Readonly<
  Record<
    string,
    (t: TestContext, brokers: readonly string[], more?: object) => Promise<KafkaProducer | undefined>
  >
> = {
  async confluent(t, brokers, more) {
    const module = (await extraClient(t, "confluent")) as ConfluentProducerModule | undefined;
    if (module === undefined) return undefined;
    return confluentProducer(module, { "bootstrap.servers": brokers.join(","), ...more });
  },
  kafkajs: (_, brokers, more) =>
    Promise.resolve(
      kafkajsProducer(
        Kafka,
        { clientId: "test", brokers, logLevel: logLevel.NOTHING, ...more },
        { createPartitioner: Partitioners.DefaultPartitioner },
      ),
    ),
  async platformatic(t, brokers, more) {
    const module = (await extraClient(t, "platformatic")) as
      { readonly Producer: PlatformaticProducerClass } | undefined;
    if (module === undefined) return undefined;
    return platformaticProducer(module.Producer, {
      ...{ clientId: "test", bootstrapBrokers: brokers, retryDelay: 100, ...more },
    });
  },
};
