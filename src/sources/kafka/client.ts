import { InboxError } from "../../errors.ts";
import type { RunFacts } from "../source.ts";
import type { TopicConfig } from "./topic-retention.ts";

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

/** A place in a partition: everything below `offset` lies behind it. */
export interface Position extends TopicPartition {
  readonly offset: bigint;
}

/** A partition given to this member. `start` is the group's committed offset; `undefined` where there is none. */
export interface Assignment extends TopicPartition {
  readonly start: bigint | undefined;
}

/** One record as the client gave it. What is `unknown` may hold anything. */
export interface KafkaRecord extends Position {
  readonly key: unknown;
  /** `null` is a tombstone. */
  readonly value: Uint8Array | null;
  /** An object, a Map or a list, of bytes, texts or lists of those, as each client has them. */
  readonly headers: unknown;
  /** The record's own time, in milliseconds since 1970, as a number, a bigint or their digits; negative where there is none. */
  readonly timestamp?: unknown;
}

/** The first and the next offset of a partition at the broker. */
export interface Watermarks {
  readonly low: bigint;
  readonly high: bigint;
}

/** What the source wants of a client. */
export interface ClientRequest {
  readonly topics: readonly string[];
  readonly groupId: string;
  readonly facts: RunFacts;
  /** How long `revoked` may take, in milliseconds. */
  readonly revokeTimeoutMs: number;
}

/** What a client tells the source. Partitions are named as the client has them; nothing of it throws. */
export interface ClientEvents {
  /** Called before any record of these partitions. Resolves with where reading shall begin; rejects if it must not begin at all. */
  assigned(partitions: readonly Assignment[]): Promise<readonly Assignment[]>;
  /** These partitions must be given back. Resolves when the client may do so. */
  revoked(partitions: readonly TopicPartition[]): Promise<void>;
  /** These partitions belong to somebody else already. */
  lost(partitions: readonly TopicPartition[]): void;
  /** Hands records over, those of a partition in their order. Resolves when there is room for more. */
  records(records: readonly KafkaRecord[]): Promise<void>;
  /** Everything below this position was handed over, or is no record: a transaction's mark, a compacted stretch. */
  readTo(position: Position): void;
  /** The broker answered: the client is in touch with it. */
  alive(): void;
  warn(message: string): void;
  /** The client cannot go on. */
  failed(error: Error): void;
}

/** A member of the group. */
export interface KafkaSession {
  /** Rejects if the broker refused, or did not answer. */
  commit(positions: readonly Position[]): Promise<void>;
  /** Stops reading a partition, without leaving the group; what was fetched and not handed over is read again. */
  pause(partition: TopicPartition): void;
  resume(partition: TopicPartition): void;
  /** Asks the broker, each time. */
  identify(topic: string): Promise<LogIdentity>;
  /** Asks the broker. Rejects with `source-failed` where it says that there is no such topic. */
  watermarks(partition: TopicPartition): Promise<Watermarks>;
  /** Hands nothing over any more; stays in the group, so that what is in hand can be committed. */
  stop(): Promise<void>;
  /** Leaves the group. */
  close(): Promise<void>;
}

/** Which log it is: offsets mean something only in one incarnation of one topic of one cluster. `undefined`: the client cannot tell. */
export interface LogIdentity {
  readonly clusterId: string | undefined;
  readonly topicId: string | undefined;
}

/**
 * A Kafka client as the source needs it; `confluent`, `kafkajs` and `platformatic` make one. It owns the connection and
 * the group's protocol; which offsets may be committed is the source's.
 */
export interface KafkaClient {
  readonly name: string;
  /** How long a group waits for an answer to a revocation before it goes on without this member, in milliseconds. */
  readonly rebalanceTimeoutMs: number;
  /** Connects and joins the group. Rejects with `source-failed` if no broker answers or a topic is not there. */
  open(request: ClientRequest, events: ClientEvents): Promise<KafkaSession>;
  /** A topic's configuration, asked over a connection of its own; left out where the client cannot ask. */
  topicConfig?(topic: string): Promise<TopicConfig>;
}

/** For a topic that was there when reading began. */
export const noTopic = (topic: string, cause: unknown): InboxError =>
  new InboxError("source-failed", `There is no topic ${topic} any more.`, { cause });

export const nameOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`;
