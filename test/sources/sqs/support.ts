import { randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  SendMessageBatchCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { SqsFacts } from "../../services/facts.ts";
import { service } from "../../services/service.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { until } from "../../support/in-time.ts";

export interface Queue {
  readonly client: SQSClient;
  readonly facts: SqsFacts;
  readonly queueUrl: string;
  /** Sends texts, or messages, ten a request, in order. */
  send(messages: readonly (string | Sent)[]): Promise<void>;
  /** What SQS says of its messages: waiting, and handed over and not settled. */
  counts(): Promise<Counts>;
  /** Resolves when that is what it holds; rejects after 30 s. */
  until(wanted: Counts): Promise<void>;
  /** Resolves when the queue holds nothing; rejects after 30 s. */
  empty(): Promise<void>;
}

export interface Counts {
  readonly waiting: number;
  readonly inFlight: number;
}

export interface Sent {
  readonly body: string;
  readonly group?: string;
  readonly attributes?: Readonly<Record<string, string>>;
}

export interface QueueOptions {
  readonly fifo?: boolean;
  /** Default 5: what a killed process leaves is back soon. */
  readonly visibilitySeconds?: number;
  /** Deliveries after which a message goes to a dead-letter queue. */
  readonly maxReceiveCount?: number;
}

/** A client as a user makes it, with one that fails at once where the server is away. */
export function clientOf(t: TestContext, { endpoint, region, credentials }: SqsFacts): SQSClient {
  const client = new SQSClient({ endpoint, region, credentials, maxAttempts: 2 });
  onTestEnd(t, () => client.destroy());
  return client;
}

/** A queue of the test's own on the server that all tests share; `undefined` where there is none, and `t` was skipped. */
export async function testQueue(t: TestContext, options: QueueOptions = {}): Promise<Queue | undefined> {
  const facts = await service(t, "sqs");
  if (facts === undefined) return undefined;
  const client = clientOf(t, facts);
  const name = `test-${randomBytes(6).toString("hex")}`;
  const suffix = options.fifo === true ? ".fifo" : "";
  const create = async (queueName: string, attributes: Record<string, string>): Promise<string> => {
    const fifo = options.fifo === true ? { FifoQueue: "true" } : {};
    const { QueueUrl } = await client.send(
      new CreateQueueCommand({ QueueName: queueName, Attributes: { ...attributes, ...fifo } }),
    );
    onTestEnd(t, async () => void (await client.send(new DeleteQueueCommand({ QueueUrl }))));
    return QueueUrl!;
  };
  const attributes: Record<string, string> = { VisibilityTimeout: String(options.visibilitySeconds ?? 5) };
  if (options.maxReceiveCount !== undefined) {
    const dead = await create(`${name}-dead${suffix}`, {});
    attributes["RedrivePolicy"] = JSON.stringify({
      deadLetterTargetArn: (await attributesOf(client, dead))["QueueArn"],
      maxReceiveCount: options.maxReceiveCount,
    });
  }
  return queueAt(client, facts, await create(`${name}${suffix}`, attributes));
}

function queueAt(client: SQSClient, facts: SqsFacts, queueUrl: string): Queue {
  const counts = async (): Promise<Counts> => {
    const attributes = await attributesOf(client, queueUrl);
    const number = (name: string): number => Number(attributes[`ApproximateNumberOfMessages${name}`] ?? 0);
    return { waiting: number("") + number("Delayed"), inFlight: number("NotVisible") };
  };
  const holds = (wanted: Counts): Promise<void> =>
    until(
      `the queue to hold ${JSON.stringify(wanted)}`,
      async () => {
        const answer = await counts();
        return { holds: answer.waiting === wanted.waiting && answer.inFlight === wanted.inFlight, answer };
      },
      { ms: 30_000 },
    );
  return {
    client,
    facts,
    queueUrl,
    counts,
    async send(messages) {
      for (let i = 0; i < messages.length; i += 10) {
        const Entries = messages.slice(i, i + 10).map((message, j) => entryOf(message, String(j)));
        const { Failed } = await client.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
        if ((Failed ?? []).length > 0) throw new Error(`Not sent: ${JSON.stringify(Failed)}`);
      }
    },
    until: holds,
    empty: () => holds({ waiting: 0, inFlight: 0 }),
  };
}

function entryOf(message: string | Sent, Id: string) {
  const { body, group, attributes = {} } = typeof message === "string" ? { body: message } : message;
  return {
    Id,
    MessageBody: body,
    ...(group === undefined
      ? {}
      : { MessageGroupId: group, MessageDeduplicationId: randomBytes(8).toString("hex") }),
    MessageAttributes: Object.fromEntries(
      Object.entries(attributes).map(([name, StringValue]) => [name, { DataType: "String", StringValue }]),
    ),
  };
}

async function attributesOf(client: SQSClient, queueUrl: string): Promise<Record<string, string>> {
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ["All"] }),
  );
  return Attributes ?? {};
}

/** A body with its id, as `formats.sqs({ idPath: "/id" })` reads it. */
export const body = (id: string, more: object = {}): string => JSON.stringify({ id, ...more });
