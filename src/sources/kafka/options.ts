import { InboxError } from "../../errors.ts";
import { toFormat, type FormatChoice } from "../../message/formats/formats.ts";
import type { Format } from "../../message/formats/format.ts";
import { receiveMessage } from "../../message/create-message.ts";
import { isRejected } from "../../message/message.ts";
import { showValue } from "../../message/show-value.ts";
import { wholeNumber } from "../../whole-number.ts";
import type { KafkaClient } from "./client.ts";
import { isCursor, type CursorStrategy } from "./cursor.ts";

export interface KafkaOptions {
  /** `confluent(...)`, `kafkajs(...)` or `platformatic(...)`. */
  readonly client: KafkaClient;
  /** The topics' names. They must be there when the source starts. */
  readonly topics: readonly string[];
  /** The consumer group. All processes of one consumer use the same, and nobody else does. */
  readonly groupId: string;
  /** How records name their messages: a format's name (`"cloudevents"`, `"debezium-outbox"`, …) or a format; or `cursor()`. */
  readonly identity: FormatChoice | CursorStrategy;
  /** The tenant of all messages. Default none. */
  readonly tenant?: string | undefined;
  /**
   * `strict`: who took a partition over is never overtaken by the owner before, not even by one that was frozen in the middle
   * of its work: each transaction asks the database whether its process still owns the partition. Costs a round trip a
   * transaction, and a new owner waits for transactions of the old one that are still open. Default `relaxed`: an old owner
   * that has not noticed yet may apply what it has in hand beside the new one; each message is applied once all the same.
   */
  readonly order?: "relaxed" | "strict" | undefined;
  /** How often offsets are committed, in milliseconds. What was handled since is delivered again after a crash. Default 1,000. */
  readonly commitIntervalMs?: number | undefined;
  /**
   * How long a partition that is taken away may finish what is in hand, in milliseconds; the whole group may wait for it.
   * What is not done by then is left to the next owner. Default 15,000; less than the client's rebalance timeout.
   */
  readonly revokeTimeoutMs?: number | undefined;
  /**
   * Most records of one partition that are read beyond the first unsettled one; then the partition is paused until that one
   * is settled. Bounds memory and what a crash reads again. Default 100,000.
   */
  readonly maxAhead?: number | undefined;
  /** With no answer from any broker for so long the source ends with an error, in milliseconds. Default 300,000. */
  readonly brokerTimeoutMs?: number | undefined;
}

export interface KafkaSettings {
  readonly client: KafkaClient;
  readonly topics: readonly string[];
  readonly groupId: string;
  /** `undefined` with the cursor strategy. */
  readonly format: Format | undefined;
  readonly cursor: CursorStrategy | undefined;
  readonly tenant: string | undefined;
  readonly strict: boolean;
  readonly commitIntervalMs: number;
  readonly revokeTimeoutMs: number;
  readonly maxAhead: number;
  readonly brokerTimeoutMs: number;
}

/** Checks every option; throws `invalid-option` with field, rule and value. */
export function kafkaSettings(options: KafkaOptions): KafkaSettings {
  const { client, topics, groupId, tenant } = options;
  if (typeof client?.open !== "function") {
    refuse("client must be made by confluent(...), kafkajs(...) or platformatic(...)", client);
  }
  if (!areTopics(topics)) refuse("topics must be a list of one or more topic names", topics);
  if (new Set(topics).size !== topics.length) refuse("topics must name each topic once", topics);
  if (typeof groupId !== "string" || groupId === "") refuse("groupId must be a text", groupId);
  const order: unknown = options.order ?? "relaxed";
  if (order !== "relaxed" && order !== "strict") refuse('order must be "relaxed" or "strict"', order);
  if (isCursor(options.identity)) checkTenant(tenant);
  const most = client.rebalanceTimeoutMs - 1;
  return {
    ...{ client, topics: [...topics], groupId, tenant },
    strict: order === "strict",
    format: isCursor(options.identity) ? undefined : toFormat(options.identity),
    cursor: isCursor(options.identity) ? options.identity : undefined,
    commitIntervalMs: wholeNumber("commitIntervalMs", options.commitIntervalMs, 1_000, 1, 3_600_000),
    revokeTimeoutMs: wholeNumber(
      "revokeTimeoutMs",
      options.revokeTimeoutMs,
      Math.min(15_000, Math.floor(client.rebalanceTimeoutMs / 2)),
      0,
      most,
    ),
    maxAhead: wholeNumber("maxAhead", options.maxAhead, 100_000, 1, 10_000_000),
    brokerTimeoutMs: wholeNumber("brokerTimeoutMs", options.brokerTimeoutMs, 300_000, 1_000, 86_400_000),
  };
}

/** Records of a cursor have names of ours, and no other fault than this. */
function checkTenant(tenant: unknown): void {
  const made = receiveMessage({ tenant, producer: "topic", id: "id", payload: null });
  if (isRejected(made)) refuse(`tenant: ${made.rejected.text}`, tenant);
}

const areTopics = (topics: unknown): topics is readonly string[] =>
  Array.isArray(topics) && topics.length > 0 && topics.every(isTopic);

const isTopic = (topic: unknown): boolean =>
  typeof topic === "string" && /^[a-zA-Z0-9._-]{1,249}$/.test(topic);

function refuse(rule: string, value: unknown): never {
  throw new InboxError("invalid-option", `${rule}; got ${showValue(value)}.`);
}
