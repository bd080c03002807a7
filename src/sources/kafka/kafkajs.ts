import { InboxError } from "../../errors.ts";
import { wholeNumber } from "../../whole-number.ts";
import type { ClientEvents, ClientRequest, KafkaClient, KafkaSession, Position } from "./client.ts";
import { createKafkajsBatches } from "./kafkajs-batches.ts";
import { createKafkajsMembership } from "./kafkajs-membership.ts";
import { createKafkajsWatermarks } from "./kafkajs-watermarks.ts";
import type { KafkajsAdmin, KafkajsConsumer, KafkajsKafka, KafkajsOffsets } from "./kafkajs-shapes.ts";

export interface KafkajsOptions {
  /** Where a group without committed offsets begins: at the first record, or with what comes after. Default true. */
  readonly fromBeginning?: boolean | undefined;
  /** What `kafka.consumer(...)` is given besides `groupId`: `sessionTimeout`, `heartbeatInterval`, `maxBytes`, … */
  readonly consumer?: Readonly<Record<string, unknown>> | undefined;
}

// kafkajs restarts by itself for ever; without a record between, so many restarts are no accident.
const maxRestarts = 10;

/**
 * `kafkajs`: `kafka` is your `new Kafka({...})`. It has no callback before partitions are taken away: see docs/kafka.md for
 * what that means. Throws `invalid-option`.
 */
export function kafkajs(kafka: KafkajsKafka, options: KafkajsOptions = {}): KafkaClient {
  if (typeof kafka?.consumer !== "function" || typeof kafka.admin !== "function") {
    throw new InboxError("invalid-option", "kafkajs(kafka): kafka must be a new Kafka({...}) of kafkajs.");
  }
  const config = options.consumer ?? {};
  if ("groupId" in config) {
    throw new InboxError("invalid-option", "kafkajs: groupId is set by the source; leave it out.");
  }
  const milliseconds = (name: string, fallback: number): number =>
    wholeNumber(name, config[name] as number | undefined, fallback, 1, 86_400_000);
  const sessionTimeoutMs = milliseconds("sessionTimeout", 30_000);
  const heartbeatMs = milliseconds("heartbeatInterval", 3_000);
  return {
    name: "kafkajs",
    rebalanceTimeoutMs: Math.min(milliseconds("rebalanceTimeout", 60_000), sessionTimeoutMs),
    open: (request, events) => open(kafka, options, heartbeatMs, request, events),
  };
}

async function open(
  kafka: KafkajsKafka,
  options: KafkajsOptions,
  heartbeatMs: number,
  request: ClientRequest,
  events: ClientEvents,
): Promise<KafkaSession> {
  const { topics, groupId } = request;
  const admin = kafka.admin() as KafkajsAdmin;
  // A fetch that waits long holds heartbeats up, and with them the news of a rebalance.
  const config = { maxWaitTimeInMs: 500, ...options.consumer, groupId };
  const consumer = kafka.consumer(config as never) as KafkajsConsumer;
  const watermarks = createKafkajsWatermarks(admin);
  let stopped = false;
  let closing = false;
  let restarts = 0;

  await connect(admin, topics, groupId);
  const membership = createKafkajsMembership({
    ...{ groupId, consumer, admin, watermarks, events },
    fromBeginning: options.fromBeginning ?? true,
    stopped: () => stopped,
  });
  const batches = createKafkajsBatches({
    ...{ consumer, membership, watermarks, events, heartbeatMs },
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
  // It joins again at once: what can be committed before is committed.
  on("rebalancing", () => void membership.handBack());
  on<Parameters<typeof batches.filtered>[0]>("start_batch_process", (batch) => batches.filtered(batch));
  on<{ error: Error; restart: boolean }>("crash", ({ error, restart }) => {
    membership.lost();
    restarts++;
    if (!restart || restarts >= maxRestarts) {
      events.failed(
        new InboxError("source-failed", `The Kafka client gave up: ${error.message}`, { cause: error }),
      );
    } else events.warn(`The Kafka client starts again: ${error.message}`);
  });

  try {
    await consumer.connect();
    await consumer.subscribe({ topics, fromBeginning: options.fromBeginning ?? true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: 1,
      eachBatch: (payload) => batches.take(payload),
    });
  } catch (error) {
    await Promise.allSettled([consumer.disconnect(), admin.disconnect()]);
    throw error;
  }

  return {
    commit: (positions) => batches.commit(offsetsOf(positions)),
    pause: ({ topic, partition }) => consumer.pause([{ topic, partitions: [partition] }]),
    resume: ({ topic, partition }) => consumer.resume([{ topic, partitions: [partition] }]),
    watermarks,
    async stop() {
      // Stopping the consumer would leave the group: it goes on, with nothing to fetch, until the last commit is done.
      stopped = true;
      batches.pauseAll(topics);
    },
    async close() {
      if (closing) return;
      closing = true;
      await Promise.allSettled([consumer.disconnect(), admin.disconnect()]);
    },
  };
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

function offsetsOf(positions: readonly Position[]): KafkajsOffsets {
  const byTopic = new Map<string, { partition: number; offset: string }[]>();
  for (const { topic, partition, offset } of positions) {
    const partitions = byTopic.get(topic) ?? [];
    partitions.push({ partition, offset: String(offset) });
    byTopic.set(topic, partitions);
  }
  return { topics: [...byTopic].map(([topic, partitions]) => ({ topic, partitions })) };
}
