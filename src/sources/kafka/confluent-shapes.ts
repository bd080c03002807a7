/** What of `@confluentinc/kafka-javascript` is used: its classic API, which is librdkafka's own. */
export interface ConfluentModule {
  readonly KafkaConsumer: new (config: never, topicConfig: never) => object;
  /** For what is asked of topics: its `create`. The package's own type says that it is an instance. */
  readonly AdminClient?: unknown;
}

export interface ConfluentPartition {
  readonly topic: string;
  readonly partition: number;
  readonly offset?: number | null | undefined;
}

export interface ConfluentMessage {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly key?: unknown;
  readonly value: Uint8Array | null;
  readonly headers?: unknown;
  readonly timestamp?: unknown;
}

export interface ConfluentError extends Error {
  readonly code: number;
  readonly isFatal?: boolean;
}

type Callback<Result = unknown> = (error: Error | null | undefined, result: Result) => void;

export interface ConfluentConsumer {
  on(event: string, listener: (event: never) => void): unknown;
  connect(options: { readonly timeout: number }, done: Callback<ConfluentMetadata>): unknown;
  disconnect(done: Callback): unknown;
  subscribe(topics: readonly string[]): unknown;
  unsubscribe(): unknown;
  consume(most: number, done: Callback<readonly ConfluentMessage[]>): void;
  setDefaultConsumeTimeout(timeoutMs: number): void;
  setDefaultIsTimeoutOnlyForFirstMessage(only: boolean): void;
  committed(
    partitions: readonly ConfluentPartition[],
    timeoutMs: number,
    done: Callback<readonly ConfluentPartition[]>,
  ): unknown;
  commit(partitions: readonly ConfluentPartition[]): unknown;
  assign(partitions: readonly ConfluentPartition[]): unknown;
  unassign(): unknown;
  incrementalAssign(partitions: readonly ConfluentPartition[]): unknown;
  incrementalUnassign(partitions: readonly ConfluentPartition[]): unknown;
  assignments(): readonly ConfluentPartition[];
  assignmentLost(): boolean;
  rebalanceProtocol(): string;
  pause(partitions: readonly ConfluentPartition[]): unknown;
  resume(partitions: readonly ConfluentPartition[]): unknown;
  getMetadata(
    options: { readonly topic: string; readonly timeout: number },
    done: Callback<ConfluentMetadata>,
  ): unknown;
  queryWatermarkOffsets(
    topic: string,
    partition: number,
    timeoutMs: number,
    done: Callback<{ readonly lowOffset: number; readonly highOffset: number }>,
  ): unknown;
}

/** The package gives the id as `base64`, and its types say `base64str`. */
export interface ConfluentTopic {
  readonly topicId?: { readonly base64?: string; readonly base64str?: string };
  readonly error?: { readonly message?: string };
}

export interface ConfluentAdmin {
  describeTopics(
    topics: readonly string[],
    options: { readonly timeout: number },
    done: Callback<readonly ConfluentTopic[]>,
  ): void;
  disconnect(): void;
}

export interface ConfluentMetadata {
  readonly topics: readonly { readonly name: string; readonly partitions: readonly unknown[] }[];
}

/** librdkafka's numbers for what is told apart. */
export const confluentCodes = {
  assignPartitions: -175,
  revokePartitions: -174,
  fatal: -150,
  /** There is no valid offset, and `auto.offset.reset` is `error`. */
  noOffset: -140,
  unknownPartition: -190,
  unknownTopic: -188,
  unknownTopicOrPartition: 3,
  /** Another strategy of assignment than the group's. */
  inconsistentProtocol: 23,
  invalidGroup: 24,
  invalidSessionTimeout: 26,
  topicForbidden: 29,
  groupForbidden: 30,
} as const;

/** A call with a callback, as a promise. */
export const call = <Result>(start: (done: Callback<Result>) => unknown): Promise<Result> =>
  new Promise((resolve, reject) => {
    start((error, result) => {
      if (error) reject(error);
      else resolve(result);
    });
  });
