import type { StandardSchemaV1 } from "@standard-schema/spec";
import { InboxError } from "../errors.ts";
import type { FingerprintOptions } from "../message/fingerprint-mode.ts";
import { idTimeReader, type IdTime, type ReadIdTime } from "../message/id-time.ts";
import { maxConsumerBytes, maxProducerBytes } from "../message/limits.ts";
import type { IsolationLevel, Store } from "../store/store.ts";
import type { ErrorClassifier } from "./classify-error.ts";
import { retryPolicy, type RetryOptions, type RetryPolicy } from "./retry.ts";
import type { OutboxSettings } from "./handler-outbox.ts";
import { wholeNumber } from "../whole-number.ts";

export interface InboxOptions<Schema extends StandardSchemaV1 | undefined = undefined> {
  readonly store: Store;
  /** Who consumes, 1 to 128 bytes: part of every identity's key. Chosen by you and never changed by a refactoring. */
  readonly consumer: string;
  /** Written beside what this handler applied. Raise it when the handler's meaning changes. Default `"1"`. */
  readonly handlerVersion?: string | undefined;
  /** A Standard Schema (Zod, Valibot, ArkType, …) for the payload's JSON; `message.data` is what it makes of it. */
  readonly payloadSchema?: Schema;
  /** How two payloads of one identity are compared. Default `{ by: "bytes" }`. */
  readonly fingerprint?: FingerprintOptions | undefined;
  /** Transactions side by side in `processBatch` and `run`. Fewer than the pool's connections. Default 4, or what the pool leaves. */
  readonly lanes?: number | undefined;
  /** Most messages in one transaction. Default 500. */
  readonly maxBatch?: number | undefined;
  /** How long a transaction of many messages may last, in milliseconds. A lane claims only what fits. Default 250. */
  readonly maxTransactionMs?: number | undefined;
  /** How long one handler may take, in milliseconds. Default 30,000. */
  readonly handlerTimeoutMs?: number | undefined;
  /** How long to wait for a claim of the same message by another process before answering `busy`, in milliseconds. Default 100. */
  readonly claimLockTimeoutMs?: number | undefined;
  /** How long to wait for a connection, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** When a message that failed runs again, and when it does not any more. */
  readonly retry?: RetryOptions | undefined;
  /**
   * What a failed message does to the later ones of its key, in `run` and `work`. `park-key`: they are stored behind it
   * and follow it in order; other keys go on. `block`: its lane waits. `skip`: they go on without it. A message without
   * a key keeps nobody waiting. Default `park-key`.
   */
  readonly order?: Order | undefined;
  /**
   * Unclean deaths of the process during one message after which it goes to quarantine. Default 3: a kill from outside
   * looks the same, and may hit the same message twice.
   */
  readonly maxCrashes?: number | undefined;
  /** Serialization failures and deadlocks of one message before it is answered `busy`. They never count as attempts. Default 10. */
  readonly maxConflicts?: number | undefined;
  /** Default `read committed`. The others work by retry. */
  readonly isolation?: IsolationLevel | undefined;
  /** Your own reading of an error, before the built-in one. */
  readonly classifyError?: ErrorClassifier | undefined;
  /** Who asks for the effects of handlers, and headers that each gets. Default: the consumer's name, and none. */
  readonly outbox?: Partial<OutboxSettings> | undefined;
  /**
   * How long identities are kept, in milliseconds, by the clock of the consumer's sources; see `inbox retention plan`.
   * Stored when a run starts; of two processes with different windows the longer wins. Default: for ever.
   */
  readonly windowMs?: number | undefined;
  /**
   * Where the ids of messages are made when they are sent and carry that time: it counts for whether a message is `late`,
   * beside what producer and broker say; the earliest does. An id without one counts for nothing. Default: ids carry none.
   */
  readonly idTime?: IdTime | undefined;
  /** A number from 0 to 1, for jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** The options with every default filled in. */
export interface InboxSettings {
  readonly lanes: number;
  readonly maxBatch: number;
  readonly maxTransactionMs: number;
  readonly handlerTimeoutMs: number;
  readonly claimLockTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly retry: RetryPolicy;
  readonly order: Order;
  readonly maxCrashes: number;
  readonly maxConflicts: number;
  readonly isolation: IsolationLevel;
  readonly classifyError: ErrorClassifier | undefined;
  readonly outbox: OutboxSettings;
  /** `undefined`: none is declared. */
  readonly windowMs: number | undefined;
  /** `undefined`: ids carry no time. */
  readonly idTimeOf: ReadIdTime | undefined;
  readonly random: () => number;
}

/** What a failed message does to the later ones of its key. */
export type Order = "park-key" | "block" | "skip";

const orders: readonly string[] = ["park-key", "block", "skip"];
const isolationLevels: readonly string[] = ["read committed", "repeatable read", "serializable"];

/** Checks every option; throws `invalid-option` with field, rule and value. */
export function settingsFrom(options: InboxOptions<StandardSchemaV1 | undefined>): InboxSettings {
  if (typeof options.store?.begin !== "function") {
    throw new InboxError("invalid-option", "store must be a store, such as postgres(pool).");
  }
  checkText("consumer", options.consumer, maxConsumerBytes);
  checkText("handlerVersion", options.handlerVersion ?? "1", 128);
  checkText("outbox.producer", options.outbox?.producer ?? options.consumer, maxProducerBytes);
  const isolation = options.isolation ?? "read committed";
  if (!isolationLevels.includes(isolation)) {
    throw new InboxError(
      "invalid-option",
      `isolation must be one of ${isolationLevels.join(", ")}; got ${show(isolation)}.`,
    );
  }
  const order = options.order ?? "park-key";
  if (!orders.includes(order)) {
    throw new InboxError("invalid-option", `order must be one of ${orders.join(", ")}; got ${show(order)}.`);
  }
  const { maxConnections } = options.store;
  // One connection stays free for quarantine, attempts and the worker's lease.
  const spare = maxConnections === undefined ? undefined : Math.max(1, maxConnections - 1);
  const lanes = wholeNumber("lanes", options.lanes, Math.min(4, spare ?? 4), 1, 256);
  if (maxConnections !== undefined && lanes > 1 && lanes > maxConnections - 1) {
    throw new InboxError(
      "invalid-option",
      `lanes: ${lanes} needs a pool of at least ${lanes + 1} connections; this one has max: ${maxConnections}. Raise the pool's max or lower lanes.`,
    );
  }
  return {
    lanes,
    maxBatch: wholeNumber("maxBatch", options.maxBatch, 500, 1, 10_000),
    maxTransactionMs: wholeNumber("maxTransactionMs", options.maxTransactionMs, 250, 1, 60_000),
    handlerTimeoutMs: wholeNumber("handlerTimeoutMs", options.handlerTimeoutMs, 30_000, 1, 86_400_000),
    claimLockTimeoutMs: wholeNumber("claimLockTimeoutMs", options.claimLockTimeoutMs, 100, 1, 60_000),
    connectTimeoutMs: wholeNumber("connectTimeoutMs", options.connectTimeoutMs, 5_000, 1, 600_000),
    retry: retryPolicy(options.retry),
    order,
    maxCrashes: wholeNumber("maxCrashes", options.maxCrashes, 3, 1, 1_000),
    maxConflicts: wholeNumber("maxConflicts", options.maxConflicts, 10, 0, 1_000),
    isolation,
    classifyError: options.classifyError,
    outbox: { producer: options.outbox?.producer ?? options.consumer, headers: options.outbox?.headers },
    windowMs:
      options.windowMs === undefined
        ? undefined
        : wholeNumber("windowMs", options.windowMs, options.windowMs, 1, 3_155_760_000_000),
    idTimeOf: options.idTime === undefined ? undefined : idTimeReader(options.idTime),
    random: options.random ?? Math.random,
  };
}

function checkText(field: string, value: unknown, maxBytes: number): void {
  const fits =
    typeof value === "string" &&
    value !== "" &&
    value.isWellFormed() &&
    !value.includes("\0") &&
    Buffer.byteLength(value) <= maxBytes;
  if (!fits) {
    throw new InboxError(
      "invalid-option",
      `${field} must be a text of 1 to ${maxBytes} bytes without NUL; got ${show(value)}.`,
    );
  }
}

const show = (value: unknown): string =>
  typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : String(value);
