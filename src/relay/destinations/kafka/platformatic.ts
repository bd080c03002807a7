import { InboxError } from "../../../errors.ts";
import { within } from "../within.ts";
import { failureOf } from "./failure-of.ts";
import type { KafkaProducer, SendFailure } from "./producer.ts";

/** What of `@platformatic/kafka` is used: its class `Producer`. */
export type PlatformaticProducerClass = new (options: never) => object;

interface Producer {
  send(request: {
    readonly messages: readonly object[];
    readonly acks: -1;
    readonly autocreateTopics: boolean;
  }): Promise<unknown>;
  metadata(options: {
    readonly topics: readonly string[];
    readonly autocreateTopics: boolean;
    readonly retries: number;
  }): Promise<unknown>;
  initIdempotentProducer(options: object): Promise<unknown>;
  close(force: boolean): Promise<unknown>;
}

const sendTimeoutMs = 25_000;
const owned = [
  "idempotent",
  "acks",
  "transactionalId",
  "serializers",
  "registry",
  "producerId",
  "producerEpoch",
];

/**
 * `@platformatic/kafka`, on Node 22 and later: `Producer` is its class, `config` what that is made with, without what the
 * destination decides itself (`idempotent`, `acks`, `serializers`, …). Throws `invalid-option`.
 */
export function platformaticProducer(
  Producer: PlatformaticProducerClass,
  config: Readonly<Record<string, unknown>>,
): KafkaProducer {
  if (typeof Producer !== "function")
    refuse("platformaticProducer(Producer, config): Producer must be the class of @platformatic/kafka");
  if (typeof config !== "object" || config === null)
    refuse("platformaticProducer(Producer, config): config must be an object");
  for (const name of owned)
    if (name in config) refuse(`platformaticProducer: ${name} is set by the destination; leave it out`);
  let current: Promise<Producer> | undefined;

  async function start(): Promise<Producer> {
    const made = new Producer({ autocreateTopics: false, ...config, idempotent: true } as never) as Producer;
    try {
      await made.initIdempotentProducer({});
    } catch (error) {
      await made.close(true).catch(() => undefined);
      throw error;
    }
    return made;
  }

  return {
    name: "platformatic",
    async connect() {
      const starting = (current ??= start());
      starting.catch(() => {
        if (current === starting) current = undefined;
      });
      await starting;
    },
    async send(records): Promise<readonly (SendFailure | undefined)[]> {
      try {
        if (current === undefined) throw notConnected();
        const messages = records.map(({ topic, key, value, headers }) => ({
          topic,
          ...(key === null ? {} : { key }),
          ...(value === null ? {} : { value }),
          headers: new Map(
            Object.entries(headers).map(([name, text]) => [Buffer.from(name), Buffer.from(text)]),
          ),
        }));
        const producer = await current;
        const topics = [...new Set(records.map(({ topic }) => topic))];
        // Its `send` never answers for a topic that is not there, nor does this, if it may try more than once. What is known of one that is costs nothing here.
        const unknown = await producer
          .metadata({ topics, autocreateTopics: false, retries: 0 })
          .then(() => undefined, failureOf);
        if (unknown !== undefined) {
          const failure = unknown.kind === "unclear" ? { ...unknown, kind: "not-sent" as const } : unknown;
          return records.map(() => failure);
        }
        await within(
          producer.send({ messages, acks: -1, autocreateTopics: false }),
          sendTimeoutMs,
          "sending",
        );
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
      await (await last?.catch(() => undefined))?.close(true);
    },
  };
}

const notConnected = (): Error => Object.assign(new Error("The producer is closed."), { code: -195 });

function refuse(text: string): never {
  throw new InboxError("invalid-option", `${text}.`);
}
