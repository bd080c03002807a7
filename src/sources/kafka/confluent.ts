import { InboxError } from "../../errors.ts";
import { wholeNumber } from "../../whole-number.ts";
import {
  noTopic,
  type ClientEvents,
  type ClientRequest,
  type KafkaClient,
  type KafkaSession,
  type TopicPartition,
} from "./client.ts";
import { createConfluentCommits } from "./confluent-commits.ts";
import { createConfluentPauses } from "./confluent-pauses.ts";
import { createConfluentRebalance } from "./confluent-rebalance.ts";
import {
  call,
  confluentCodes,
  type ConfluentConsumer,
  type ConfluentError,
  type ConfluentMessage,
  type ConfluentMetadata,
  type ConfluentModule,
} from "./confluent-shapes.ts";
import { createConfluentTopicIds } from "./confluent-topic-ids.ts";
import { createTurns } from "./confluent-turns.ts";
import { within } from "./within.ts";

/** librdkafka's configuration: `bootstrap.servers`, `security.protocol`, `partition.assignment.strategy`, … */
export type ConfluentConfig = Readonly<Record<string, unknown>>;

const defaultPollIntervalMs = 300_000;
const requestTimeoutMs = 5_000;
const connectTimeoutMs = 15_000;
// How long one poll waits on a thread of Node's pool.
const pollMs = 200;
// A pause throws away what was fetched ahead, so short waits do without.
const pauseAfterMs = 1_000;
// How long an answer may be owed, and the client's end may take.
const answerMs = 2_000;
const leaveMs = 15_000;
// Of 4 MiB the run was a sixth slower, and took 20 MB less.
const mostQueuedKilobytes = 16_384;
const mostRecords = 1_000;
const fewestRecords = 50;
const owned = [
  "group.id",
  "enable.auto.commit",
  "enable.auto.offset.store",
  "enable.partition.eof",
  "rebalance_cb",
  "offset_commit_cb",
];

/**
 * `@confluentinc/kafka-javascript`, by its classic API. `config` is librdkafka's; what the source must decide itself
 * (`group.id`, `enable.auto.commit`, `rebalance_cb`, …) is refused. Without `auto.offset.reset` a new group begins at the
 * earliest record. Throws `invalid-option`.
 */
export function confluent(module: ConfluentModule, config: ConfluentConfig): KafkaClient {
  if (typeof module?.KafkaConsumer !== "function") {
    refuse("confluent(module, config): module must be what @confluentinc/kafka-javascript exports");
  }
  if (typeof config !== "object" || config === null)
    refuse("confluent(module, config): config must be an object");
  for (const name of owned)
    if (name in config) refuse(`confluent: ${name} is set by the source; leave it out`);
  const rebalanceTimeoutMs = wholeNumber(
    "max.poll.interval.ms",
    config["max.poll.interval.ms"] as number | undefined,
    defaultPollIntervalMs,
    1_000,
    86_400_000,
  );
  return {
    name: "confluent",
    rebalanceTimeoutMs,
    open: (request, events) => open(module, config, request, events),
  };
}

async function open(
  module: ConfluentModule,
  config: ConfluentConfig,
  request: ClientRequest,
  events: ClientEvents,
): Promise<KafkaSession> {
  const { facts, topics, groupId } = request;
  const mostAtOnce = Math.min(mostRecords, Math.max(fewestRecords, facts.maxInHand));
  let stopped = false;
  let closing = false;
  let reached: { topic: string; partition: number; offset: number }[] = [];

  const topicIds = createConfluentTopicIds(module, config);
  const turns = createTurns();
  const commits = createConfluentCommits();
  const pauses = createConfluentPauses(() => consumer, events.warn);
  const rebalance = createConfluentRebalance(events, turns, pauses, () => closing);
  const Consumer = module.KafkaConsumer as unknown as new (
    config: object,
    topic: undefined,
  ) => ConfluentConsumer;
  const consumer = new Consumer(
    {
      "queued.max.messages.kbytes": Math.max(
        1_024,
        Math.min(mostQueuedKilobytes, Math.ceil(facts.maxInHandBytes / 1_024)),
      ),
      "queued.min.messages": Math.max(1_000, Math.min(20_000, facts.maxInHand)),
      "auto.offset.reset": "earliest",
      ...config,
      "group.id": groupId,
      "enable.auto.commit": false,
      "enable.auto.offset.store": false,
      "enable.partition.eof": true,
      rebalance_cb(error: ConfluentError, partitions: readonly TopicPartition[]) {
        rebalance.on(consumer, error, partitions);
      },
      offset_commit_cb: commits.answered,
    },
    // An object here, even an empty one, would put the topics' settings of `config` (auto.offset.reset) out of force.
    undefined,
  );
  const on = <Event>(name: string, listener: (event: Event) => void): void =>
    void consumer.on(name, listener);
  const said = (error: ConfluentError): void => {
    if (!ends.has(error.code) && error.isFatal !== true)
      return events.warn(`The Kafka client says: ${error.message}`);
    const text = `The Kafka client gave up: ${error.message}`;
    events.failed(new InboxError("source-failed", text, { cause: error }));
  };
  let lastSaid = "";
  on<ConfluentError>("event.error", (error) => {
    lastSaid = error.message;
    said(error);
  });
  on<(typeof reached)[number]>("partition.eof", (end) => void reached.push(end));

  async function connect(): Promise<void> {
    const metadata = await call<ConfluentMetadata>((done) =>
      consumer.connect({ timeout: connectTimeoutMs }, done),
    ).catch((cause: unknown) => {
      const why = [(cause as Error).message, lastSaid].filter((text) => text !== "").join("; ");
      throw new InboxError("source-failed", `No Kafka broker can be used: ${why}`, { cause });
    });
    const there = new Set(metadata.topics.map(({ name }) => name));
    const missing = topics.filter((topic) => !there.has(topic));
    if (missing.length === 0) return;
    await call((done) => consumer.disconnect(done));
    throw new InboxError("source-failed", `There is no topic ${missing.join(", ")}.`);
  }

  /** Asks a broker. */
  async function isThere(topic: string): Promise<boolean> {
    const { topics } = await call<ConfluentMetadata>((done) =>
      consumer.getMetadata({ topic, timeout: requestTimeoutMs }, done),
    );
    return topics.some(({ name, partitions }) => name === topic && partitions.length > 0);
  }

  async function receive(): Promise<readonly ConfluentMessage[]> {
    try {
      return await call<readonly ConfluentMessage[]>((done) => consumer.consume(mostAtOnce, done));
    } catch (error) {
      said(error as ConfluentError);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
      return [];
    }
  }

  /** Hands over what one poll gave; resolves when there is room for more. */
  function handOver(messages: readonly ConfluentMessage[]): Promise<void> {
    const ended = reached;
    reached = [];
    for (const partition of messages) pauses.gave(partition);
    for (const partition of ended) pauses.gave(partition);
    if (stopped || (messages.length === 0 && ended.length === 0)) return Promise.resolve();
    const room = events.records(
      messages.map(({ topic, partition, offset, key, value, headers, timestamp }) => ({
        ...{ topic, partition, key, value, headers, timestamp },
        offset: BigInt(offset),
      })),
    );
    for (const { topic, partition, offset } of ended)
      events.readTo({ topic, partition, offset: BigInt(offset) });
    return room;
  }

  /** Polling goes on while there is no room, or the group would think this member dead. */
  async function poll(): Promise<void> {
    let releasedAt = 0;
    while (!closing) {
      const { room: first, count } = await once();
      let room = first;
      if (stopped) continue;
      if (await within(room, pauseAfterMs)) {
        if (count > 0 || performance.now() - releasedAt > pauseAfterMs) pauses.follow();
        continue;
      }
      pauses.hold();
      for (let full = true; full && !closing;) {
        const more = await once();
        room = Promise.all([room, more.room]);
        full = !(await within(room, 0));
      }
      releasedAt = performance.now();
      if (!stopped && !closing) pauses.release();
    }
  }

  /** In an object, as the promise in it is not to be waited for here. */
  const once = (): Promise<{ readonly room: Promise<unknown>; readonly count: number }> =>
    turns.poll(receive, (messages) => ({ room: handOver(messages), count: messages.length }));

  await connect();
  consumer.setDefaultConsumeTimeout(pollMs);
  consumer.setDefaultIsTimeoutOnlyForFirstMessage(true);
  consumer.subscribe(topics);
  const polling = poll();
  polling.catch((error: unknown) => events.failed(error as Error));

  async function leave(): Promise<void> {
    closing = true;
    await polling.catch(() => undefined);
    // One that came before the end may wait for what is in hand; the client's own end would wait for its answer.
    await rebalance.answered();
    topicIds.close();
    const ended = call((done) => consumer.disconnect(done));
    if (!(await within(ended, leaveMs))) events.warn(`The Kafka client has not ended within ${leaveMs} ms.`);
  }

  /**
   * librdkafka sends a commit again for as long as no broker takes it, and its end waits for that, on a thread of Node's pool:
   * then not even process.exit() comes through.
   */
  async function close(): Promise<void> {
    stopped = true;
    if (await within(commits.settled(), answerMs)) return leave();
    events.warn(
      "No broker has answered a commit of offsets: the Kafka client cannot end before one does, and goes on in the background.",
    );
    consumer.unsubscribe();
    void commits
      .settled()
      .then(leave)
      .catch(() => undefined);
  }

  let left: Promise<void> | undefined;
  return {
    commit: (positions) => commits.send(consumer, positions),
    pause: (partition) => pauses.rest(partition, true),
    resume: (partition) => pauses.rest(partition, false),
    // librdkafka knows the cluster's id, and the package has no call for it.
    identify: async (topic) => ({ clusterId: undefined, topicId: await topicIds.ask(topic) }),
    async watermarks({ topic, partition }) {
      const { lowOffset, highOffset } = await call<{ lowOffset: number; highOffset: number }>((done) =>
        consumer.queryWatermarkOffsets(topic, partition, requestTimeoutMs, done),
      ).catch(async (error: unknown) => {
        const missing = mayBeMissing.has((error as ConfluentError).code) && !(await isThere(topic));
        throw missing ? noTopic(topic, error) : error;
      });
      return { low: BigInt(lowOffset), high: BigInt(highOffset) };
    },
    async stop() {
      stopped = true;
      pauses.hold();
    },
    close: () => (left ??= close()),
  };
}

/** What librdkafka cannot mend by itself, though it tries again for ever. */
const ends: ReadonlySet<number> = new Set([
  confluentCodes.fatal,
  confluentCodes.noOffset,
  confluentCodes.inconsistentProtocol,
  confluentCodes.invalidGroup,
  confluentCodes.invalidSessionTimeout,
  confluentCodes.topicForbidden,
  confluentCodes.groupForbidden,
]);

/** The client says so also of a topic that it has forgotten, with no broker there. */
const mayBeMissing: ReadonlySet<number> = new Set([
  confluentCodes.unknownPartition,
  confluentCodes.unknownTopic,
  confluentCodes.unknownTopicOrPartition,
]);

function refuse(text: string): never {
  throw new InboxError("invalid-option", `${text}.`);
}
