import { InboxError } from "../../errors.ts";
import { toFormat, type FormatChoice } from "../../message/formats/formats.ts";
import type { Format } from "../../message/formats/format.ts";
import { showValue } from "../../message/show-value.ts";
import { wholeNumber } from "../../whole-number.ts";
import type { SqsClient } from "./client.ts";
import { isFifoName } from "./raw-message.ts";

export interface SqsSourceOptions {
  /** An `SQSClient` of `@aws-sdk/client-sqs`. It stays yours: the source never destroys it. */
  readonly client: SqsClient;
  /** The queue, as SQS names it: `https://sqs.eu-central-1.amazonaws.com/123456789012/orders`. */
  readonly queueUrl: string;
  /**
   * Where a message's id stands. Default `"sqs"`: the SNS MessageId, else the SQS MessageId, which survives no re-publish;
   * better `formats.sqs({ idPath: "/eventId" })`, an id that the producer chose.
   */
  readonly identity?: FormatChoice | undefined;
  /** The tenant of all messages. Default none. */
  readonly tenant?: string | undefined;
  /** Most long polls at once, of up to ten messages each, while the queue is full. Default 8. */
  readonly receivers?: number | undefined;
  /**
   * How long SQS leaves a message with this consumer before it hands it to another one, in milliseconds. It is extended
   * while the message is in hand, so this is how long the messages of a process that died wait. Default: the queue's.
   */
  readonly visibilityTimeoutMs?: number | undefined;
}

/** The options, checked. */
export interface SourceSettings {
  readonly client: SqsClient;
  readonly queueUrl: string;
  readonly queueName: string;
  readonly fifo: boolean;
  readonly format: Format;
  readonly tenant: string | undefined;
  readonly receivers: number;
  readonly visibilityTimeoutMs: number | undefined;
}

/** Throws `invalid-option`. */
export function sourceSettings(options: SqsSourceOptions): SourceSettings {
  const { client, queueUrl, visibilityTimeoutMs } = options;
  if (typeof (client as Partial<SqsClient> | undefined)?.send !== "function") {
    throw new InboxError("invalid-option", "client must be an SQSClient of @aws-sdk/client-sqs.");
  }
  const queueName = nameIn(queueUrl);
  if (visibilityTimeoutMs !== undefined) {
    wholeNumber("visibilityTimeoutMs", visibilityTimeoutMs, 30_000, 1_000, 43_200_000);
    if (visibilityTimeoutMs % 1_000 !== 0) {
      throw new InboxError(
        "invalid-option",
        `visibilityTimeoutMs must be whole seconds, as SQS counts in them; got ${visibilityTimeoutMs}.`,
      );
    }
  }
  return {
    ...{ client, queueUrl, queueName, visibilityTimeoutMs },
    fifo: isFifoName(queueName),
    format: toFormat(options.identity ?? "sqs"),
    tenant: options.tenant,
    receivers: wholeNumber("receivers", options.receivers, 8, 1, 50),
  };
}

function nameIn(queueUrl: unknown): string {
  const name = URL.canParse(String(queueUrl)) ? new URL(String(queueUrl)).pathname.split("/").at(-1)! : "";
  if (name !== "") return name;
  throw new InboxError(
    "invalid-option",
    `queueUrl must be the URL of a queue, such as https://sqs.eu-central-1.amazonaws.com/123456789012/orders; got ${showValue(queueUrl)}.`,
  );
}
