import { InboxError } from "../../errors.ts";
import { wholeNumber } from "../../whole-number.ts";
import type { ClientEvents, ClientRequest, KafkaClient, KafkaSession } from "./client.ts";
import { attempt, createKafkajsBatches, type FilteredBatch } from "./kafkajs-batches.ts";
import { createKafkajsMembership } from "./kafkajs-membership.ts";
import type { KafkajsAdmin, KafkajsConsumer, KafkajsKafka, KafkajsSocketFactory } from "./kafkajs-shapes.ts";
import { createKafkajsSockets, type KafkajsSockets } from "./kafkajs-sockets.ts";
import { kafkajsTopicConfig } from "./kafkajs-topic-config.ts";
import { createKafkajsWatermarks } from "./kafkajs-watermarks.ts";
import { within } from "./within.ts";

/** What `new Kafka(...)` is given: `brokers`, `clientId`, `ssl`, `sasl`, … */
export type KafkajsConfig = Readonly<Record<string, unknown>>;

export interface KafkajsOptions {
  /** Where a group without committed offsets begins: at the first record, or with what comes after. Default true. */
  readonly fromBeginning?: boolean | undefined;
  /** What `kafka.consumer(...)` is given besides `groupId`: `sessionTimeout`, `heartbeatInterval`, `maxBytes`, … */
  readonly consumer?: Readonly<Record<string, unknown>> | undefined;
}

interface Settings {
  readonly Kafka: KafkajsKafka;
  readonly config: KafkajsConfig;
  readonly consumer: Readonly<Record<string, unknown>>;
  readonly fromBeginning: boolean;
  readonly heartbeatMs: number;
}

// kafkajs restarts by itself for ever: so many without a record between, though a broker answers, are no accident.
const maxRestarts = 10;
// So many batches, each of another partition, take turns, and so large is a turn: a long one holds no other partition up.
const concurrentBatches = 50;
const mostRecords = 100;
// How long a broker that is away may hold the end up, for the consumer and for the administration.
const leaveMs = 5_000;

/**
 * `kafkajs`: `Kafka` is its class, `config` what that is made with, `socketFactory` too. Throws `invalid-option`.
 */
export function kafkajs(
  Kafka: KafkajsKafka,
  config: KafkajsConfig,
  options: KafkajsOptions = {},
): KafkaClient {
  if (typeof Kafka !== "function") refuse("kafkajs(Kafka, config): Kafka must be the class of kafkajs");
  if (typeof config !== "object" || config === null)
    refuse("kafkajs(Kafka, config): config must be an object");
  const consumer = options.consumer ?? {};
  if ("groupId" in consumer) refuse("kafkajs: groupId is set by the source; leave it out");
  const milliseconds = (name: string, fallback: number): number =>
    wholeNumber(name, consumer[name] as number | undefined, fallback, 1, 86_400_000);
  const settings: Settings = {
    ...{ Kafka, config, consumer, fromBeginning: options.fromBeginning ?? true },
    heartbeatMs: milliseconds("heartbeatInterval", 3_000),
  };
  return {
    name: "kafkajs",
    rebalanceTimeoutMs: milliseconds("rebalanceTimeout", 60_000),
    open: (request, events) => open(settings, request, events),
    topicConfig: (topic) => kafkajsTopicConfig(Kafka, config, topic),
  };
}

async function open(settings: Settings, request: ClientRequest, events: ClientEvents): Promise<KafkaSession> {
  const { Kafka, config, fromBeginning, heartbeatMs } = settings;
  const { topics, groupId, facts } = request;
  let stopped = false;
  let closing = false;
  let restarts = 0;

  const sockets = createKafkajsSockets(
    () => batches.beforeJoin(),
    config["socketFactory"] as KafkajsSocketFactory | undefined,
  );
  const kafka = new Kafka({ ...config, socketFactory: sockets.factory } as never);
  const admin = kafka.admin({} as never) as KafkajsAdmin;
  const consumer = kafka.consumer({
    // A fetch that waits long holds heartbeats up, and with them the news of a rebalance.
    maxWaitTimeInMs: 500,
    ...settings.consumer,
    groupId,
    retry: retryOf(settings, () => closing),
  } as never) as KafkajsConsumer;
  const watermarks = createKafkajsWatermarks(admin);

  await connect(admin, topics, groupId).catch((error: unknown) => {
    sockets.close();
    throw error;
  });
  const membership = createKafkajsMembership({
    ...{ groupId, fromBeginning, consumer, admin, watermarks, events },
    stopped: () => stopped,
    closing: () => closing,
  });
  const batches = createKafkajsBatches({
    ...{ consumer, membership, watermarks, events, heartbeatMs },
    mostAtOnce: Math.min(mostRecords, facts.maxInHand),
    stopped: () => stopped,
    progress: () => (restarts = 0),
  });

  const on = <Payload>(event: string, listener: (payload: Payload) => void): void =>
    void consumer.on(`consumer.${event}`, ({ payload }) => listener(payload));
  on<{ memberAssignment: Readonly<Record<string, readonly number[]>> }>("group_join", (payload) => {
    events.alive();
    void membership.joined(payload.memberAssignment);
  });
  on("heartbeat", () => events.alive());
  on("rebalancing", () => void membership.handBack());
  on<FilteredBatch>("start_batch_process", (batch) => batches.filtered(batch));
  on<{ error: Error; restart: boolean }>("crash", ({ error, restart }) => {
    membership.lost();
    batches.ended();
    if (closing) return;
    if (!restart) return gaveUp(error);
    events.warn(`The Kafka client starts again: ${error.message}`);
    void countRestart(error);
  });

  function gaveUp(error: Error): void {
    const text = `The Kafka client gave up: ${error.message}`;
    events.failed(new InboxError("source-failed", text, { cause: error }));
  }

  /** While no broker answers the client may start again as often as it takes: that time is the source's to bound. */
  async function countRestart(error: Error): Promise<void> {
    try {
      await admin.listTopics();
    } catch {
      return;
    }
    if (++restarts >= maxRestarts) gaveUp(error);
  }

  try {
    await consumer.connect();
    // Where reading begins is told by a seek. This is where kafkajs goes by itself when the broker has dropped the records
    // that come next: what is left of them may not be passed over.
    await consumer.subscribe({ topics, fromBeginning: true });
  } catch (error) {
    closing = true;
    await leave(consumer, admin, sockets);
    throw error;
  }

  // It joins the group first, which may wait for other members to hand their partitions back.
  const running = consumer
    .run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: concurrentBatches,
      eachBatch: (payload) => batches.take(payload),
    })
    .catch((error: unknown) => {
      if (!closing) gaveUp(error as Error);
    });

  return {
    commit: (positions) => batches.commit(positions),
    pause: (partition) => batches.pause(partition),
    resume: (partition) => batches.resume(partition),
    watermarks,
    // It asks for metadata in a version that has no topic ids.
    identify: async () => ({ clusterId: (await admin.describeCluster()).clusterId, topicId: undefined }),
    async stop() {
      // Stopping the consumer would leave the group: it goes on, with nothing to fetch, until the last commit is done.
      stopped = true;
      attempt(() => consumer.pause(topics.map((topic) => ({ topic }))));
    },
    async close() {
      if (closing) return;
      closing = true;
      // A client that is told to leave while it joins for the first time would join all the same.
      await within(running, leaveMs);
      await leave(consumer, admin, sockets);
    },
  };
}

/** The user's own answer is asked, but a client that is to end never starts again. */
function retryOf({ config, consumer }: Settings, closing: () => boolean): object {
  const { restartOnFailure, ...retry } = {
    ...{ retries: 5 },
    ...(config["retry"] as object | undefined),
    ...(consumer["retry"] as object | undefined),
  } as { readonly restartOnFailure?: (error: Error) => Promise<boolean> };
  return {
    ...retry,
    restartOnFailure: async (error: Error) => !closing() && ((await restartOnFailure?.(error)) ?? true),
  };
}

async function leave(consumer: KafkajsConsumer, admin: KafkajsAdmin, sockets: KafkajsSockets): Promise<void> {
  await within(consumer.disconnect(), leaveMs).catch(() => false);
  await within(admin.disconnect(), leaveMs).catch(() => false);
  sockets.close();
}

async function connect(admin: KafkajsAdmin, topics: readonly string[], groupId: string): Promise<void> {
  try {
    await admin.connect();
    const there = new Set(await admin.listTopics());
    const missing = topics.filter((topic) => !there.has(topic));
    if (missing.length > 0) {
      throw new InboxError("source-failed", `There is no topic ${missing.join(", ")} for group ${groupId}.`);
    }
  } catch (error) {
    await admin.disconnect().catch(() => undefined);
    if (error instanceof InboxError) throw error;
    const text = `No Kafka broker can be used: ${(error as Error).message}`;
    throw new InboxError("source-failed", text, { cause: error });
  }
}

function refuse(text: string): never {
  throw new InboxError("invalid-option", `${text}.`);
}
