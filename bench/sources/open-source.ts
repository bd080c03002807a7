import { randomUUID } from "node:crypto";
import { formats } from "../../src/index.ts";
import {
  confluent,
  kafka,
  kafkajs,
  type ConfluentModule,
  type KafkaClient,
} from "../../src/sources/kafka/kafka.ts";
import { rabbitmq } from "../../src/sources/rabbitmq/rabbitmq.ts";
import type { Source } from "../../src/sources/source.ts";
import { loadExtraClient } from "../../test/services/kafka-clients.ts";
import { memorySource } from "../contenders/memory-source.ts";
import type { Payment } from "../setup.ts";
import type { Job } from "./job.ts";
import { lists, publications } from "./messages.ts";

export interface OpenSource {
  readonly source: Source;
  /** Closes what the source does not close itself. */
  close(): Promise<void>;
}

const nothing = async (): Promise<void> => undefined;

/** The source of a job, made as a user makes it. Only its own client is loaded: memory is measured, too. */
export async function openSource(job: Job): Promise<OpenSource> {
  const { client, address, place: queue } = job;
  switch (client) {
    case "memory": {
      // Made before: a broker's messages are not the consumer's work.
      const waiting = [...lists(publications(job.load), 500)];
      const next = (): readonly Payment[] | undefined => waiting.shift();
      return { source: memorySource(next, true), close: nothing };
    }
    case "rabbitmq-client": {
      const { Connection } = await import("rabbitmq-client");
      const connection = new Connection(address);
      const source = rabbitmq({ client: connection, queue, key: { header: "key" } });
      return { source, close: () => connection.close() };
    }
    case "amqplib": {
      const { connect } = await import("amqplib");
      return {
        source: rabbitmq({ client: () => connect(address), queue, key: { header: "key" } }),
        close: nothing,
      };
    }
    case "confluent": {
      const module = (await loadExtraClient("confluent")) as ConfluentModule;
      return {
        source: kafkaSource(job, confluent(module, { "bootstrap.servers": address })),
        close: nothing,
      };
    }
    case "kafkajs": {
      const { Kafka, logLevel } = (await import("kafkajs")).default;
      const own = kafkajs(Kafka, { brokers: address.split(","), logLevel: logLevel.NOTHING });
      return { source: kafkaSource(job, own), close: nothing };
    }
  }
}

const kafkaSource = ({ place }: Job, client: KafkaClient): Source =>
  kafka({
    client,
    topics: [place],
    groupId: `bench-${randomUUID()}`,
    identity: formats.header({ idHeader: "id", producer: "payments" }),
  });
