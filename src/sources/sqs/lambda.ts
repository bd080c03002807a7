import { setTimeout as sleep } from "node:timers/promises";
import { codeOf, InboxError } from "../../errors.ts";
import type { Inbox } from "../../inbox/create-inbox.ts";
import type { BatchHandler, MessageHandler } from "../../inbox/handler.ts";
import { toFormat, type FormatChoice } from "../../message/formats/formats.ts";
import type { Received } from "../../message/message.ts";
import { wholeNumber } from "../../whole-number.ts";
import { createItemReader } from "../read-items.ts";
import { chunksOf } from "./in-parallel.ts";
import { within } from "./lambda-deadline.ts";
import {
  queueOf,
  rawOf,
  type LambdaContext,
  type SqsBatchResponse,
  type SqsEvent,
  type SqsRecord,
} from "./lambda-event.ts";
import { isFifoName, readRaw } from "./raw-message.ts";

export interface SqsLambdaOptions {
  /** Where a message's id stands. Default `"sqs"`, as for `sqs(...)`, where the better choice is written. */
  readonly identity?: FormatChoice | undefined;
  /** The tenant of all messages. Default none. */
  readonly tenant?: string | undefined;
  /**
   * How long before the function's timeout it answers, in milliseconds: what is not done by then is rolled back and
   * comes again. Default 1,000.
   */
  readonly answerBeforeMs?: number | undefined;
  /**
   * Whether the event source mapping has `FunctionResponseTypes: ["ReportBatchItemFailures"]`. Default true. Without it
   * Lambda does not read the answer and deletes every message: then say `false`, and a batch that is not done whole
   * ends in an error, after which all of it comes again.
   */
  readonly reportBatchItemFailures?: boolean | undefined;
}

/** A function for an SQS event source mapping. */
export type SqsLambda = (event: SqsEvent, context?: LambdaContext) => Promise<SqsBatchResponse>;

/** A record with the messages in it; `done` once all of them may be deleted. */
interface Entry {
  readonly record: SqsRecord;
  readonly group: string | undefined;
  readonly messages: readonly Received[];
  done: boolean;
}

// What is left of a part when time is over is still rolled back one by one.
const partSize = 100;
const storeAway = new Set([
  ...["store-unavailable", "connection-lost"],
  ...["schema-missing", "schema-outdated", "schema-newer"],
]);

/**
 * A Lambda function that takes the messages of an SQS event and names exactly those that are not done: failed, busy, not
 * begun in time, or behind one of these in their FIFO group. Rejects, so that Lambda slows down, where the database is
 * away and nothing could be done. Throws `invalid-option` at once.
 */
export function sqsLambda<Data>(
  inbox: Inbox<Data>,
  handler: MessageHandler<Data> | BatchHandler<Data>,
  options: SqsLambdaOptions = {},
): SqsLambda {
  const items = createItemReader(toFormat(options.identity ?? "sqs"));
  const answerBeforeMs = wholeNumber("answerBeforeMs", options.answerBeforeMs, 1_000, 0, 900_000);
  const { tenant, reportBatchItemFailures = true } = options;

  return async (event, context) => {
    const entries = event.Records.map((record): Entry => {
      const queueName = queueOf(record);
      const fifo = isFifoName(queueName);
      const messages = readRaw(rawOf(record), { queueName, fifo, tenant, items });
      return {
        record,
        group: fifo ? record.attributes?.["MessageGroupId"] : undefined,
        messages,
        done: false,
      };
    });
    const time = new AbortController();
    const leftMs = context?.getRemainingTimeInMillis?.();
    const timer =
      leftMs === undefined ? undefined : setTimeout(() => time.abort(), Math.max(0, leftMs - answerBeforeMs));
    let away: Error | undefined;
    const limited = within(handler, time.signal);

    /** Takes records and marks those that are done. */
    async function take(part: readonly Entry[]): Promise<void> {
      const processed = await inbox.processBatch(
        part.flatMap(({ messages }) => messages),
        limited,
      );
      let next = 0;
      for (const entry of part) {
        const own = processed.slice(next, (next += entry.messages.length));
        entry.done = own.every(({ settle }) => settle === "ack");
        away ??= own.find(({ error }) => storeAway.has(codeOf(error)))?.error;
      }
    }

    /** One after another; what is behind one that is not done is not begun. */
    async function takeInOrder(parts: readonly (readonly Entry[])[]): Promise<void> {
      for (const part of parts) {
        if (time.signal.aborted || away !== undefined) return;
        await take(part);
        if (part[0]!.group !== undefined && !part[0]!.done) return;
      }
    }

    try {
      const work = Promise.all(partsOf(entries).map(takeInOrder));
      await Promise.race([work, lastMoment(time.signal, answerBeforeMs / 2)]);
    } finally {
      clearTimeout(timer);
      time.abort();
    }
    const failed = entries.filter(({ done }) => !done);
    if (failed.length > 0 && failed.length === entries.length && away !== undefined) throw away;
    if (failed.length > 0 && !reportBatchItemFailures) {
      throw new InboxError(
        "handler-failed",
        `${failed.length} of ${entries.length} messages are not done. All come again; the others are found to be duplicates.`,
      );
    }
    return { batchItemFailures: failed.map(({ record }) => ({ itemIdentifier: record.messageId })) };
  };
}

/** Lists to be worked through side by side: the messages of each group one by one, and those without in larger parts. */
function partsOf(entries: readonly Entry[]): Entry[][][] {
  const groups = new Map<string, Entry[]>();
  for (const entry of entries) {
    if (entry.group === undefined) continue;
    const group = groups.get(entry.group);
    if (group === undefined) groups.set(entry.group, [entry]);
    else group.push(entry);
  }
  const ungrouped = entries.filter(({ group }) => group === undefined);
  return [chunksOf(ungrouped, partSize), ...[...groups.values()].map((group) => chunksOf(group, 1))];
}

/** Resolves when there is no time left to wait for rollbacks. */
async function lastMoment(time: AbortSignal, waitMs: number): Promise<void> {
  if (!time.aborted) await new Promise((resolve) => time.addEventListener("abort", resolve, { once: true }));
  await sleep(waitMs, undefined, { ref: false });
}
