import type * as Sdk from "@aws-sdk/client-sqs";
import { InboxError } from "../../../errors.ts";
import { showValue } from "../../../message/show-value.ts";
import { wholeNumber } from "../../../whole-number.ts";
import type { SqsClient } from "../../../sources/sqs/client.ts";
import { errorName, isNetwork } from "../../../sources/sqs/sdk-error.ts";
import { again, isSent, refused, sent, type Answer } from "../../answer.ts";
import type { DeliveryOptions, Destination } from "../../destination.ts";
import { entryOf, type SizedEntry } from "./entry-of.ts";
import { keyChains } from "./key-chains.ts";

export interface SqsDestinationOptions extends DeliveryOptions {
  /** An `SQSClient` of `@aws-sdk/client-sqs`. It stays yours. */
  readonly client: SqsClient;
  /** The queue, as SQS names it: `https://sqs.eu-central-1.amazonaws.com/123456789012/orders`. One of `.fifo` is FIFO. */
  readonly queueUrl: string;
  /** Requests side by side for one batch of effects, of up to ten messages each. Default 8. */
  readonly requests?: number | undefined;
  /** Most bytes of one request; what is larger goes alone. Default 262,144. */
  readonly maxRequestBytes?: number | undefined;
}

interface Item extends SizedEntry {
  readonly index: number;
  readonly key: string | undefined;
}

interface BatchAnswer {
  readonly Successful?: readonly { readonly Id?: string; readonly MessageId?: string }[];
  readonly Failed?: readonly {
    readonly Id?: string;
    readonly Code?: string;
    readonly SenderFault?: boolean;
  }[];
}

const mostEntries = 10;
/** What is wrong is in the request: with one message in it, in that. */
const aboutMessages = /TooLong|^Invalid(?:Message|Parameter|Attribute)/;

/**
 * Sends effects to an SQS queue, ten a request, each as a CloudEvent in binary mode; one is sent when SQS has named it among
 * those that succeeded. No two of a key are in requests at once. What SQS finds wrong with one is refused, what is wrong with
 * the queue or the rights to it is the destination's matter. Throws `invalid-option`.
 */
export function sqsDestination(options: SqsDestinationOptions): Destination {
  const { client, queueUrl } = options;
  if (typeof (client as Partial<SqsClient> | undefined)?.send !== "function") {
    throw new InboxError("invalid-option", "client must be an SQSClient of @aws-sdk/client-sqs.");
  }
  if (typeof queueUrl !== "string" || !URL.canParse(queueUrl)) {
    throw new InboxError(
      "invalid-option",
      `queueUrl must be the URL of a queue, not ${showValue(queueUrl)}.`,
    );
  }
  const requests = wholeNumber("requests", options.requests, 8, 1, 100);
  const maxBytes = wholeNumber("maxRequestBytes", options.maxRequestBytes, 262_144, 1_024, 10_000_000);
  const fifo = new URL(queueUrl).pathname.endsWith(".fifo");
  let loading: Promise<typeof Sdk> | undefined;

  async function request(items: readonly Item[], signal: AbortSignal): Promise<readonly Answer[]> {
    const sdk = await (loading ??= loadSdk());
    const Entries = items.map(({ entry }, i) => ({ Id: String(i), ...entry }));
    const command = new sdk.SendMessageBatchCommand({ QueueUrl: queueUrl, Entries });
    let answer: BatchAnswer;
    try {
      answer = (await client.send(command as never, { abortSignal: signal })) as BatchAnswer;
    } catch (error) {
      const name = errorName(error);
      if (aboutMessages.test(name) && items.length > 1) {
        const alone = await Promise.all(items.map((item) => request([item], signal)));
        return alone.flat();
      }
      const given = answerOfFailure(name);
      return items.map(() => given);
    }
    const done = new Map(answer.Successful?.map(({ Id, MessageId }) => [Id, MessageId]));
    const failed = new Map(answer.Failed?.map((entry) => [entry.Id, entry]));
    return items.map((_, i) => {
      const id = String(i);
      const failure = failed.get(id);
      if (failure !== undefined) return answerOfEntry(failure);
      if (done.has(id)) return sent({ messageId: done.get(id) });
      return again(new Error("SQS named it neither as sent nor as failed."), {
        fault: "destination",
        ambiguous: true,
      });
    });
  }

  return {
    ...options,
    async deliverBatch(effects, { signal }): Promise<readonly (Answer | undefined)[]> {
      const answers: (Answer | undefined)[] = effects.map(() => undefined);
      const items: Item[] = [];
      const stuck = new Set<string>();
      for (const [index, effect] of effects.entries()) {
        const { key } = effect;
        if (key !== undefined && stuck.has(key)) continue;
        try {
          items.push({ ...entryOf(effect, fifo), index, key });
        } catch (error) {
          answers[index] = refused(error);
          if (key !== undefined) stuck.add(key);
        }
      }
      const chains = keyChains(items);

      async function work(): Promise<void> {
        for (let left: Item | undefined; ;) {
          const list: Item[] = [];
          let bytes = 0;
          while (list.length < mostEntries) {
            const item = left ?? chains.next();
            left = undefined;
            if (item === undefined) break;
            if (list.length > 0 && bytes + item.bytes > maxBytes) {
              left = item;
              break;
            }
            list.push(item);
            bytes += item.bytes;
          }
          if (list.length === 0) return;
          const given = await request(list, signal);
          for (const [i, item] of list.entries()) {
            answers[item.index] = given[i];
            if (given[i] !== undefined && isSent(given[i])) chains.arrived(item);
            else chains.failed(item);
          }
        }
      }
      await Promise.all(Array.from({ length: Math.min(requests, items.length) }, work));
      return answers;
    },
  };
}

function answerOfEntry({
  Code = "no code",
  SenderFault = false,
}: {
  readonly Code?: string;
  readonly SenderFault?: boolean;
}): Answer {
  const error = new Error(`SQS did not take it: ${errorName({ code: Code })}.`);
  // Rights, keys and rates are not the message's fault, whoever SQS says is at fault.
  const own = SenderFault && !/throttl|kms|denied|overlimit/i.test(Code);
  return own ? refused(error) : again(error, { fault: "destination" });
}

/** By the name alone: SQS answers a wrong signature with the whole request that was signed. */
function answerOfFailure(name: string): Answer {
  const error = new Error(`SQS could not be asked: ${name}.`);
  if (aboutMessages.test(name)) return refused(error);
  if (/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH)$/.test(name))
    return again(error, { fault: "destination" });
  return again(error, { fault: "destination", ambiguous: isNetwork(name) });
}

async function loadSdk(): Promise<typeof Sdk> {
  try {
    return await import("@aws-sdk/client-sqs");
  } catch (cause) {
    throw new InboxError(
      "missing-package",
      'The package "@aws-sdk/client-sqs" is not installed. Run: npm install @aws-sdk/client-sqs',
      { cause },
    );
  }
}
