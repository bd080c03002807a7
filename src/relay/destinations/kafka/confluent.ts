import { InboxError } from "../../../errors.ts";
import { failureOf } from "./failure-of.ts";
import type { KafkaProducer, KafkaRecord, SendFailure } from "./producer.ts";

/** What of `@confluentinc/kafka-javascript` is used: its classic API, which is librdkafka's own. */
export interface ConfluentProducerModule {
  readonly Producer: new (config: never, topicConfig: never) => object;
}

interface Producer {
  on(event: string, listener: (...args: never[]) => void): unknown;
  connect(options: { readonly timeout: number }, done: (error: unknown) => void): unknown;
  disconnect(timeoutMs: number, done: () => void): unknown;
  setPollInBackground(set: boolean): void;
  produce(
    topic: string,
    partition: null,
    value: Buffer | null,
    key: Buffer | null,
    timestamp: null,
    opaque: Slot,
    headers: readonly object[],
  ): unknown;
}

/** One record that is on its way. */
interface Slot {
  readonly settle: (failure: SendFailure | undefined) => void;
}

interface Session {
  readonly producer: Producer;
  readonly open: Set<Slot>;
}

const connectTimeoutMs = 10_000;
const flushMs = 5_000;
const fatalCode = -150;
const owned = ["enable.idempotence", "acks", "request.required.acks", "dr_cb", "dr_msg_cb"];

/**
 * `@confluentinc/kafka-javascript`, by its classic API, with librdkafka's idempotence. `config` is librdkafka's; what the
 * destination must decide itself (`enable.idempotence`, `acks`, …) is refused. Defaults besides librdkafka's: `linger.ms` 5,
 * `message.timeout.ms` 20,000, `topic.metadata.propagation.max.ms` 5,000, and `partitioner` `murmur2_random`, which puts keys where the other clients do. Throws
 * `invalid-option`.
 *
 * `message.max.bytes` should be no more than the topic takes: a record that only the broker finds too large may be overtaken
 * by later ones of its key.
 */
export function confluentProducer(
  module: ConfluentProducerModule,
  config: Readonly<Record<string, unknown>>,
): KafkaProducer {
  if (typeof module?.Producer !== "function")
    refuse("confluentProducer(module, config): module must be what @confluentinc/kafka-javascript exports");
  if (typeof config !== "object" || config === null)
    refuse("confluentProducer(module, config): config must be an object");
  for (const name of owned)
    if (name in config) refuse(`confluentProducer: ${name} is set by the destination; leave it out`);
  let current: Promise<Session> | undefined;

  async function start(): Promise<Session> {
    const settings = {
      ...{ "linger.ms": 5, "message.timeout.ms": 20_000, partitioner: "murmur2_random" },
      ...{ "topic.metadata.propagation.max.ms": 5_000 },
      ...config,
      ...{ "enable.idempotence": true, acks: -1, dr_cb: true },
    };
    const producer = new module.Producer(settings as never, undefined as never) as Producer;
    const open = new Set<Slot>();
    producer.on("delivery-report", (error: unknown, report: { readonly opaque?: Slot }) => {
      const slot = report.opaque;
      if (slot === undefined || !open.delete(slot)) return;
      slot.settle(error === null || error === undefined ? undefined : failureOf(error));
    });
    let lastSaid: unknown;
    producer.on("event.error", (error: { readonly code?: unknown; readonly isFatal?: boolean }) => {
      lastSaid = error;
      if (error.code === fatalCode || error.isFatal === true) end(session, error);
    });
    const session = { producer, open };
    try {
      await new Promise<void>((resolve, reject) => {
        producer.connect({ timeout: connectTimeoutMs }, (error) => {
          if (error === null || error === undefined) resolve();
          else
            reject(new Error(`No Kafka broker can be used: ${textOf(lastSaid ?? error)}`, { cause: error }));
        });
      });
    } catch (error) {
      void drop(producer);
      throw error;
    }
    producer.setPollInBackground(true);
    return session;
  }

  /** Nobody knows what became of what is open. */
  function end(session: Session, error: unknown): void {
    if (live === session) current = live = undefined;
    // Reports of what is done come first.
    setImmediate(() => {
      for (const slot of session.open) slot.settle({ error, kind: "unclear" });
      session.open.clear();
      void drop(session.producer);
    });
  }

  let live: Session | undefined;

  /** Resolves with a failure that is known at once, or a promise of the broker's word. */
  function produce(
    { producer, open }: Session,
    record: KafkaRecord,
  ): SendFailure | Promise<SendFailure | undefined> {
    let settle: Slot["settle"] = () => undefined;
    const answer = new Promise<SendFailure | undefined>((resolve) => (settle = resolve));
    const slot: Slot = { settle };
    open.add(slot);
    try {
      const { topic, value, key, headers } = record;
      const list = Object.entries(headers).map(([name, text]) => ({ [name]: Buffer.from(text) }));
      producer.produce(topic, null, value, key, null, slot, list);
      return answer;
    } catch (error) {
      open.delete(slot);
      const failure = failureOf(error);
      return failure.kind === "unclear" ? { error, kind: "not-sent" } : failure;
    }
  }

  return {
    name: "confluent",
    async connect() {
      const starting = (current ??= start());
      starting.catch(() => {
        if (current === starting) current = undefined;
      });
      const session = await starting;
      if (current === starting) live = session;
    },
    async send(records) {
      const session = live;
      if (session === undefined) {
        const failure: SendFailure = { error: new Error("The producer is closed."), kind: "not-sent" };
        return records.map(() => failure);
      }
      const stuck = new Set<string>();
      return Promise.all(
        records.map((record) => {
          const key = record.key?.toString("latin1");
          if (key !== undefined && stuck.has(key)) return Promise.resolve(behind);
          const answer = produce(session, record);
          if (key !== undefined && !(answer instanceof Promise)) stuck.add(key);
          return Promise.resolve(answer);
        }),
      );
    },
    async close() {
      const last = current;
      current = live = undefined;
      const session = await last?.catch(() => undefined);
      if (session !== undefined) await drop(session.producer);
    },
  };
}

const behind: SendFailure = { error: new Error("One before it was not sent."), kind: "behind" };

const drop = (producer: Producer): Promise<void> =>
  new Promise((resolve) => {
    try {
      producer.disconnect(flushMs, resolve);
    } catch {
      resolve();
    }
  });

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function refuse(text: string): never {
  throw new InboxError("invalid-option", `${text}.`);
}
