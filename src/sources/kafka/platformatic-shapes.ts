/** What of `@platformatic/kafka` is used: its class `Consumer`, of which only calls that leave the records to us. */
export type PlatformaticConsumerClass = new (options: never) => object;

export interface PlatformaticConsumer {
  memberId: string | null;
  generationId: number;
  readonly assignments: readonly PlatformaticAssignment[] | null;
  readonly topics: { trackAll(...topics: string[]): unknown };
  on(event: string, listener: (payload: never) => void): unknown;
  joinGroup(options: object): Promise<unknown>;
  metadata(options: {
    readonly topics: string[];
    readonly autocreateTopics?: boolean;
  }): Promise<PlatformaticMetadata>;
  clearMetadata(): void;
  fetch(options: object): Promise<PlatformaticFetched>;
  commit(options: {
    readonly offsets: readonly {
      readonly topic: string;
      readonly partition: number;
      readonly offset: bigint;
      readonly leaderEpoch: number;
    }[];
  }): Promise<unknown>;
  listOffsets(options: {
    readonly topics: string[];
    readonly partitions: Readonly<Record<string, number[]>>;
    readonly timestamp: bigint;
  }): Promise<PlatformaticOffsets>;
  listCommittedOffsets(options: {
    readonly topics: readonly PlatformaticAssignment[];
  }): Promise<PlatformaticOffsets>;
  close(force: boolean): Promise<unknown>;
}

export interface PlatformaticAssignment {
  readonly topic: string;
  readonly partitions: readonly number[];
}

/** By topic, at the places of their partitions. */
export type PlatformaticOffsets = ReadonlyMap<string, readonly (bigint | undefined)[]>;

export interface PlatformaticMetadata {
  readonly id?: string;
  readonly topics: ReadonlyMap<
    string,
    { readonly id: string; readonly partitions: readonly { readonly leader: number }[] } | undefined
  >;
}

export interface PlatformaticFetched {
  readonly responses: readonly {
    readonly topicId: string;
    readonly partitions: readonly PlatformaticPartition[];
  }[];
}

export interface PlatformaticPartition {
  readonly partitionIndex: number;
  readonly errorCode: number;
  readonly abortedTransactions?:
    readonly { readonly producerId: bigint; readonly firstOffset: bigint }[] | null;
  readonly records: readonly PlatformaticBatch[] | null;
}

export interface PlatformaticBatch {
  /** In milliseconds since 1970. */
  readonly firstTimestamp?: bigint;
  readonly maxTimestamp?: bigint;
  readonly firstOffset: bigint;
  readonly lastOffsetDelta: number;
  readonly attributes: number;
  readonly producerId: bigint;
  readonly records: readonly PlatformaticRecord[];
}

export interface PlatformaticRecord {
  /** To the first of its batch. */
  readonly timestampDelta?: bigint | number;
  readonly offsetDelta: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [Buffer | null, Buffer | null])[];
}

/** An error of the client, or what it names as its cause. */
interface Failure {
  readonly code?: unknown;
  readonly apiId?: unknown;
  readonly canRetry?: unknown;
  readonly needsRejoin?: unknown;
  readonly errors?: unknown;
  readonly cause?: unknown;
  readonly response?: unknown;
}

/** The error and all that it holds. */
function* failuresIn(error: unknown): Generator<Failure> {
  if (typeof error !== "object" || error === null) return;
  const failure = error as Failure;
  yield failure;
  if (Array.isArray(failure.errors)) for (const inner of failure.errors) yield* failuresIn(inner);
  yield* failuresIn(failure.cause);
}

/** The broker refuses, and would again: no access, or a group that works in another way. */
export function isFinal(error: unknown): boolean {
  for (const { code, canRetry, needsRejoin } of failuresIn(error)) {
    if (code === "PLT_KFK_AUTHENTICATION") return true;
    if (code === "PLT_KFK_PROTOCOL" && canRetry === false && needsRejoin !== true) return true;
  }
  return false;
}

/** What was fetched for other partitions of the request that failed. */
export function fetchedBeside(error: unknown): PlatformaticFetched | undefined {
  for (const { response } of failuresIn(error)) {
    const fetched = response as PlatformaticFetched | undefined;
    if (Array.isArray(fetched?.responses)) return fetched;
  }
  return undefined;
}

/** The innermost messages: the outer ones only count attempts. */
export function textOf(error: unknown): string {
  const texts = [...failuresIn(error)]
    .filter(({ errors, cause }) => errors === undefined && cause === undefined)
    .map((failure) => (failure as { readonly message?: unknown }).message)
    .filter((text) => typeof text === "string");
  return [...new Set(texts)].slice(0, 3).join("; ") || String(error);
}
