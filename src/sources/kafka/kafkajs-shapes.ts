import type { Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";

/** What of `kafkajs` is used: its class `Kafka`. */
export type KafkajsKafka = new (config: never) => {
  consumer(config: never): object;
  admin(config: never): object;
};

/** kafkajs' own type of it. */
export type KafkajsSocketFactory = (options: {
  readonly host: string;
  readonly port: number;
  readonly ssl: ConnectionOptions;
  readonly onConnect: () => void;
}) => Socket;

export interface KafkajsConsumer {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  subscribe(subscription: {
    readonly topics: readonly string[];
    readonly fromBeginning: boolean;
  }): Promise<void>;
  run(config: {
    readonly autoCommit: false;
    readonly eachBatchAutoResolve: false;
    readonly partitionsConsumedConcurrently: number;
    readonly eachBatch: (payload: KafkajsBatchPayload) => Promise<void>;
  }): Promise<void>;
  seek(position: { readonly topic: string; readonly partition: number; readonly offset: string }): void;
  pause(topics: readonly KafkajsPartitions[]): void;
  resume(topics: readonly KafkajsPartitions[]): void;
  /** Tries again by itself, in whatever generation it then is. */
  commitOffsets(
    offsets: readonly { readonly topic: string; readonly partition: number; readonly offset: string }[],
  ): Promise<void>;
  on(event: string, listener: (event: { readonly payload: never }) => void): unknown;
}

export interface KafkajsPartitions {
  readonly topic: string;
  /** Default: all. */
  readonly partitions?: number[];
}

export interface KafkajsBatch {
  readonly topic: string;
  readonly partition: number;
  /** Where the fetch began. Not in the declared types, and there in every release since 1.8. */
  readonly fetchedOffset?: unknown;
  readonly messages: readonly {
    readonly offset: string;
    readonly key: unknown;
    readonly value: Uint8Array | null;
    readonly headers?: unknown;
    readonly timestamp?: unknown;
  }[];
  lastOffset(): string;
}

export interface KafkajsBatchPayload {
  readonly batch: KafkajsBatch;
  resolveOffset(offset: string): void;
  heartbeat(): Promise<void>;
  /** Sends a commit once, as the member of the generation it is called in. */
  commitOffsetsIfNecessary(offsets: KafkajsOffsets): Promise<void>;
  isRunning(): boolean;
  /** A seek is due: what the batch holds was read before it. */
  isStale(): boolean;
}

export interface KafkajsOffsets {
  readonly topics: {
    readonly topic: string;
    readonly partitions: { readonly partition: number; readonly offset: string }[];
  }[];
}

export interface KafkajsAdmin {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  describeCluster(): Promise<{ readonly clusterId: string }>;
  listTopics(): Promise<readonly string[]>;
  fetchOffsets(options: { readonly groupId: string; readonly topics: readonly string[] }): Promise<
    readonly {
      readonly topic: string;
      readonly partitions: readonly { readonly partition: number; readonly offset: string }[];
    }[]
  >;
  fetchTopicOffsets(
    topic: string,
  ): Promise<readonly { readonly partition: number; readonly low: string; readonly high: string }[]>;
}
