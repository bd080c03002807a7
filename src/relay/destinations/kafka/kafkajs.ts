import { InboxError } from "../../../errors.ts";
import { failureOf } from "./failure-of.ts";
import type { KafkaProducer, SendFailure } from "./producer.ts";

/** What of `kafkajs` is used: its class `Kafka`. */
export type KafkajsProducerKafka = new (config: never) => { producer(config: never): object };

interface Producer {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  send(request: {
    readonly topic: string;
    readonly acks: -1;
    readonly messages: readonly {
      readonly key: Buffer | null;
      readonly value: Buffer | null;
      readonly headers: Readonly<Record<string, string>>;
    }[];
  }): Promise<unknown>;
}

/**
 * `kafkajs`: `Kafka` is its class, `config` what that is made with, `producer` what `kafka.producer(...)` is given besides:
 * `createPartitioner`, `metadataMaxAge`. Throws `invalid-option`.
 *
 * Its retries are not used: after one it may confirm records that it has not sent, those of a partition whose leader moved
 * to a node that had answered before. What fails is sent again by the relay. Nor is its idempotence: after a request whose
 * answer was lost it gives the same sequence numbers to other records, and the broker, which takes them for the first ones,
 * confirms them and drops them.
 */
export function kafkajsProducer(
  Kafka: KafkajsProducerKafka,
  config: Readonly<Record<string, unknown>>,
  producer: Readonly<Record<string, unknown>> = {},
): KafkaProducer {
  if (typeof Kafka !== "function")
    refuse("kafkajsProducer(Kafka, config): Kafka must be the class of kafkajs");
  if (typeof config !== "object" || config === null)
    refuse("kafkajsProducer(Kafka, config): config must be an object");
  for (const name of ["idempotent", "transactionalId", "retry"]) {
    if (name in producer) refuse(`kafkajsProducer: ${name} cannot be used; leave it out`);
  }
  let current: Promise<Producer> | undefined;

  async function start(): Promise<Producer> {
    const kafka = new Kafka({ requestTimeout: 15_000, ...config } as never);
    const made = kafka.producer({
      allowAutoTopicCreation: false,
      ...producer,
      retry: { retries: 0 },
    } as never) as Producer;
    await made.connect();
    return made;
  }

  return {
    name: "kafkajs",
    async connect() {
      const starting = (current ??= start());
      starting.catch(() => {
        if (current === starting) current = undefined;
      });
      await starting;
    },
    async send(records): Promise<readonly (SendFailure | undefined)[]> {
      const topic = records[0]?.topic ?? "";
      try {
        if (current === undefined) throw notConnected();
        const messages = records.map(({ key, value, headers }) => ({ key, value, headers }));
        await (await current).send({ topic, acks: -1, messages });
        return records.map(() => undefined);
      } catch (error) {
        // Some partitions of the request may have it all the same.
        const failure = failureOf(error);
        return records.map(() => failure);
      }
    },
    async close() {
      const last = current;
      current = undefined;
      await (await last?.catch(() => undefined))?.disconnect();
    },
  };
}

const notConnected = (): Error => Object.assign(new Error("The producer is closed."), { code: -195 });

function refuse(text: string): never {
  throw new InboxError("invalid-option", `${text}.`);
}
