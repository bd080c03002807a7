import { InboxError } from "../../errors.ts";
import { wholeNumber } from "../../whole-number.ts";
import {
  noTopic,
  type ClientEvents,
  type ClientRequest,
  type KafkaClient,
  type KafkaSession,
  type TopicPartition,
  type Watermarks,
} from "./client.ts";
import { createPlatformaticMembership, type Joined } from "./platformatic-membership.ts";
import { createPlatformaticReader } from "./platformatic-reader.ts";
import {
  isFinal,
  textOf,
  type PlatformaticConsumer,
  type PlatformaticConsumerClass,
} from "./platformatic-shapes.ts";
import { within } from "./within.ts";

/** What `new Consumer(...)` is given: `clientId`, `bootstrapBrokers`, `tls`, `sasl`, `sessionTimeout`, … */
export type PlatformaticConfig = Readonly<Record<string, unknown>>;

export interface PlatformaticOptions {
  /** Where a group without committed offsets begins: at the first record, or with what comes after. Default true. */
  readonly fromBeginning?: boolean | undefined;
}

interface Settings {
  readonly Consumer: PlatformaticConsumerClass;
  readonly config: PlatformaticConfig;
  readonly fromBeginning: boolean;
  readonly cooperative: boolean;
}

const own = [
  "groupId",
  "groupProtocol",
  "autocommit",
  "protocolsMetadata",
  "deserializers",
  "beforeDeserialization",
  "registry",
];
const mostRecords = 100;
const firstPauseMs = 100;
const longestPauseMs = 2_000;
// How long a broker that is away may hold the end up.
const leaveMs = 5_000;
const earliest = -2n;
const latest = -1n;

/**
 * `@platformatic/kafka`, on Node 22 and later: `Consumer` is its class, `config` what that is made with, without what the
 * source decides itself (`groupId`, `autocommit`, …). Throws `invalid-option`.
 */
export function platformatic(
  Consumer: PlatformaticConsumerClass,
  config: PlatformaticConfig,
  options: PlatformaticOptions = {},
): KafkaClient {
  if (typeof Consumer !== "function")
    refuse("platformatic(Consumer, config): Consumer must be the class of @platformatic/kafka");
  if (typeof config !== "object" || config === null)
    refuse("platformatic(Consumer, config): config must be an object");
  for (const name of own)
    if (name in config) refuse(`platformatic: ${name} is set by the source; leave it out`);
  const milliseconds = (name: string, fallback: number): number =>
    wholeNumber(name, config[name] as number | undefined, fallback, 1, 86_400_000);
  const sessionTimeoutMs = milliseconds("sessionTimeout", 60_000);
  const settings: Settings = {
    ...{ Consumer, config, fromBeginning: options.fromBeginning ?? true },
    cooperative: isCooperative(config["protocols"]),
  };
  return {
    name: "platformatic",
    // It sends no heartbeats while it waits for partitions to be given back.
    rebalanceTimeoutMs: Math.min(sessionTimeoutMs, milliseconds("rebalanceTimeout", 102_000)),
    open: (request, events) => open(settings, request, events),
  };
}

/** Only where no member can make the group eager. */
const isCooperative = (protocols: unknown): boolean =>
  Array.isArray(protocols) &&
  protocols.length > 0 &&
  protocols.every((protocol) => (protocol as { name?: unknown } | null)?.name === "cooperative-sticky");

async function open(settings: Settings, request: ClientRequest, events: ClientEvents): Promise<KafkaSession> {
  const { config, fromBeginning, cooperative } = settings;
  const { topics, groupId, facts, revokeTimeoutMs } = request;
  let stopped = false;
  let closing = false;
  let joining = false;
  let commits: Promise<unknown> = Promise.resolve();

  const make = (more: object): PlatformaticConsumer => {
    const Consumer = settings.Consumer as new (options: object) => PlatformaticConsumer;
    const client = new Consumer({ ...config, groupId, autocommit: false, ...more });
    client.topics.trackAll(...topics);
    return client;
  };
  const group = make({ protocolsMetadata: () => membership.beforeJoin() });
  // With tries of its own it would join again, and send a commit of the old generation as the new one's.
  const offsets = make({ retries: 0 });
  const fetching = make({ retries: 0 });
  const clients = [group, offsets, fetching];

  const watermarks = async (partition: TopicPartition): Promise<Watermarks> => {
    const [low, high] = await Promise.all([offsetAt(partition, earliest), offsetAt(partition, latest)]);
    return { low, high };
  };
  async function offsetAt({ topic, partition }: TopicPartition, timestamp: bigint): Promise<bigint> {
    const asked = { topics: [topic], partitions: { [topic]: [partition] }, timestamp };
    const listed = await offsets.listOffsets(asked).catch((error: unknown) => {
      throw missingIn(error) === undefined ? error : noTopic(topic, error);
    });
    const offset = listed.get(topic)?.[partition];
    if (offset === undefined) throw new Error(`There is no partition ${partition} of ${topic}.`);
    return offset;
  }

  const membership = createPlatformaticMembership({
    ...{ group, offsets, watermarks, events, cooperative, fromBeginning, revokeTimeoutMs },
    closing: () => closing,
    ready: () => reader.wake(),
  });
  const number = (name: string, fallback: number): number =>
    typeof config[name] === "number" ? config[name] : fallback;
  const reader = createPlatformaticReader({
    ...{ client: fetching, topics, watermarks, events },
    limits: {
      maxBytes: number("maxBytes", Math.max(1_048_576, Math.min(16_777_216, facts.maxInHandBytes))),
      maxBytesPerPartition: number("maxBytesPerPartition", 1_048_576),
      minBytes: number("minBytes", 1),
      maxWaitTime: number("maxWaitTime", 500),
    },
    mostOfOne: Math.min(mostRecords, facts.maxInHand),
    owned: () => membership.owned(),
    stopped: () => stopped || closing,
    grown: () => void join(),
  });

  /** The client joins again by itself, until that fails once. */
  async function join(): Promise<void> {
    if (joining) return;
    joining = true;
    for (let pauseMs = firstPauseMs; !closing; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        await group.joinGroup({});
        break;
      } catch (error) {
        if (closing) break;
        if (isFinal(error)) {
          const text = `The Kafka client gave up: ${textOf(error)}`;
          events.failed(new InboxError("source-failed", text, { cause: error }));
          break;
        }
        events.warn(`The group could not be joined: ${textOf(error)}`);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
    joining = false;
  }

  group.on("consumer:group:join", (payload: Joined) => membership.joined(payload));
  group.on("consumer:heartbeat:end", () => events.alive());
  group.on("error", () => void join());
  for (const client of [offsets, fetching]) client.on("error", () => undefined);

  try {
    await offsets.metadata({ topics: [...topics], autocreateTopics: false });
  } catch (error) {
    closing = true;
    await closeAll(clients);
    const unknown = missingIn(error);
    const text =
      unknown === undefined
        ? `No Kafka broker can be used: ${textOf(error)}`
        : `There is no topic ${unknown} for group ${groupId}.`;
    throw new InboxError("source-failed", text, { cause: error });
  }
  void join();

  async function commit(positions: Parameters<KafkaSession["commit"]>[0]): Promise<void> {
    const { member } = membership;
    if (member === undefined) throw new Error("The group has not been joined yet.");
    // This client never joins: what it sends is sent as the member that read it, whatever happened since.
    offsets.memberId = member.memberId;
    offsets.generationId = member.generationId;
    const list = positions.map(({ topic, partition, offset }) => ({
      ...{ topic, partition, offset, leaderEpoch: -1 },
    }));
    await offsets.commit({ offsets: list }).catch((cause: unknown) => {
      throw new Error(textOf(cause), { cause });
    });
  }

  return {
    commit(positions) {
      const committed = commits.then(() => commit(positions));
      commits = committed.catch(() => undefined);
      return committed;
    },
    pause(partition) {
      const reading = membership.get(partition);
      if (reading !== undefined) reading.paused = true;
    },
    resume(partition) {
      const reading = membership.get(partition);
      if (reading !== undefined) reading.paused = false;
      reader.wake();
    },
    watermarks,
    async identify(topic) {
      offsets.clearMetadata();
      const metadata = await offsets.metadata({ topics: [topic], autocreateTopics: false });
      return { clusterId: metadata.id, topicId: metadata.topics.get(topic)?.id };
    },
    async stop() {
      stopped = true;
    },
    async close() {
      if (closing) return;
      closing = true;
      await closeAll(clients);
    },
  };
}

/** The topic that a broker says is not there. */
const missingIn = (error: unknown): string | undefined => /Unknown topic (\S+)\./.exec(textOf(error))?.[1];

/** Leaves the group with the first. */
async function closeAll(clients: readonly PlatformaticConsumer[]): Promise<void> {
  for (const client of clients) await within(client.close(true), leaveMs).catch(() => false);
}

function refuse(text: string): never {
  throw new InboxError("invalid-option", `${text}.`);
}
