import { InboxError } from "../errors.ts";
import { property } from "../message/formats/property.ts";
import { connectSqs, type SqsClient } from "../sources/sqs/client.ts";
import type { BrokerFacts, DeadLetterFacts } from "./facts.ts";

/**
 * What SQS keeps of a queue: its retention, its visibility timeout, and the same of its dead-letter queue. Needs
 * `sqs:GetQueueAttributes` on both. Rejects with `source-failed` where it may not be asked.
 */
export async function askSqs(client: SqsClient, queueUrl: string): Promise<BrokerFacts> {
  const attributes = await attributesOf(client, queueUrl);
  return {
    name: `sqs:${nameIn(queueUrl)}`,
    kind: "queue",
    retentionMs: secondsOf(attributes, "MessageRetentionPeriod", queueUrl),
    redeliverAfterMs: secondsOf(attributes, "VisibilityTimeout", queueUrl),
    deadLetter: await deadLetterOf(client, queueUrl, attributes),
  };
}

async function deadLetterOf(
  client: SqsClient,
  queueUrl: string,
  attributes: Readonly<Record<string, string>>,
): Promise<DeadLetterFacts | undefined> {
  const policy = attributes["RedrivePolicy"];
  if (policy === undefined || policy === "") return undefined;
  const name = targetOf(policy);
  if (name === undefined) {
    throw new InboxError(
      "source-failed",
      `The redrive policy of ${nameIn(queueUrl)} names no dead-letter queue.`,
    );
  }
  // A dead-letter queue belongs to the account and region of its queue, so only the last part differs.
  const url = queueUrl.replace(/[^/]*$/, encodeURIComponent(name));
  return {
    name: `sqs:${name}`,
    retentionMs: secondsOf(await attributesOf(client, url), "MessageRetentionPeriod", url),
    startsAnew: name.endsWith(".fifo"),
  };
}

async function attributesOf(client: SqsClient, queueUrl: string): Promise<Readonly<Record<string, string>>> {
  const api = await connectSqs(client, queueUrl);
  try {
    return await api.attributes(["MessageRetentionPeriod", "VisibilityTimeout", "RedrivePolicy"]);
  } catch (cause) {
    throw new InboxError("source-failed", `SQS does not tell the attributes of ${nameIn(queueUrl)}.`, {
      cause,
    });
  }
}

const nameIn = (queueUrl: string): string => decodeURIComponent(queueUrl.split("/").at(-1) ?? "");

function targetOf(policy: string): string | undefined {
  try {
    const arn = property(JSON.parse(policy), "deadLetterTargetArn");
    return typeof arn === "string" ? /:([A-Za-z0-9_-]{1,80}(?:\.fifo)?)$/.exec(arn)?.[1] : undefined;
  } catch {
    return undefined;
  }
}

function secondsOf(attributes: Readonly<Record<string, string>>, name: string, queueUrl: string): number {
  const text = attributes[name];
  if (text !== undefined && /^\d+$/.test(text)) return Number(text) * 1_000;
  throw new InboxError("source-failed", `SQS does not tell the ${name} of ${nameIn(queueUrl)}.`);
}
