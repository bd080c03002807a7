import type { TestContext } from "node:test";
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  SendMessageBatchCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { FormatChoice } from "../../../src/message/formats/formats.ts";
import { sqs } from "../../../src/sources/sqs/sqs.ts";
import type { Source } from "../../../src/sources/source.ts";
import type { SqsFacts } from "../../services/facts.ts";
import type { OwnService } from "../../services/service.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import { requireOrSkip } from "../../support/require-or-skip.ts";
import { lineThrough, type Needs, type Place, type Sent } from "../subject.ts";

/** What a consumer process makes its source of. */
export interface SqsConfig extends Pick<SqsFacts, "region" | "credentials"> {
  /** With the proxy's port where the case cuts lines: the SDK connects to the host of the queue's URL. */
  readonly queueUrl: string;
}

// Also how long the messages of a consumer that died wait for the next one.
const visibilitySeconds = 2;
const shortVisibilitySeconds = 1;

/** A queue of the case's own, standard or FIFO. */
export async function openQueue(
  t: TestContext,
  needs: Needs,
  suite: Scope,
  fifo: boolean,
): Promise<Place | undefined> {
  // This file is in the consumers' program too, where nothing starts services.
  const { ownService, service } = await import("../../services/service.ts");
  let own: OwnService<SqsFacts> | undefined;
  let facts: SqsFacts | undefined;
  if (needs.restart) {
    own = await ownService(t, "sqs");
    facts = own?.facts;
    if (facts !== undefined && !(await keepsMessages(facts))) {
      requireOrSkip(t, false, "the SQS server of npm keeps nothing over a restart");
      return undefined;
    }
  } else facts = await service(t, "sqs");
  if (facts === undefined) return undefined;

  const client = clientOf(facts);
  onTestEnd(needs.restart ? t : suite, () => client.destroy());
  const seconds = needs.shortLease ? shortVisibilitySeconds : visibilitySeconds;
  const { QueueUrl: queueUrl } = await client.send(
    new CreateQueueCommand({
      QueueName: fifo ? `${needs.name}.fifo` : needs.name,
      Attributes: { VisibilityTimeout: String(seconds), ...(fifo ? { FifoQueue: "true" } : {}) },
    }),
  );
  onTestEnd(t, async () => void (await client.send(new DeleteQueueCommand({ QueueUrl: queueUrl }))));

  const url = new URL(queueUrl!);
  const proxy = needs.line ? await faultProxy(t, { host: facts.host, port: facts.port }) : undefined;
  if (proxy !== undefined) url.host = `${proxy.host}:${proxy.port}`;
  const { region, credentials } = facts;
  return {
    config: { queueUrl: url.href, region, credentials } satisfies SqsConfig,
    publish: (messages) => publish(client, queueUrl!, messages, fifo),
    unsettled: () => unsettled(client, queueUrl!),
    ...(own === undefined ? {} : { restart: () => killAndStart(own) }),
    ...(proxy === undefined ? {} : { line: lineThrough(proxy, "AmazonSQS.DeleteMessageBatch") }),
    ...(needs.shortLease ? { leaseMs: seconds * 1_000 } : {}),
  };
}

/** The source as a user makes it. */
export function makeSqsSource({ queueUrl, region, credentials }: SqsConfig, identity: FormatChoice): Source {
  const endpoint = new URL(queueUrl).origin;
  return sqs({ client: clientOf({ endpoint, region, credentials }), queueUrl, identity });
}

const clientOf = ({
  endpoint,
  region,
  credentials,
}: Pick<SqsFacts, "endpoint" | "region" | "credentials">): SQSClient =>
  new SQSClient({ endpoint, region, credentials });

async function publish(
  client: SQSClient,
  queueUrl: string,
  messages: readonly Sent[],
  fifo: boolean,
): Promise<void> {
  for (let i = 0; i < messages.length; i += 10) {
    const Entries = messages.slice(i, i + 10).map(({ body, key, publication }, j) => ({
      ...{ Id: String(j), MessageBody: body },
      ...(fifo ? { MessageGroupId: key, MessageDeduplicationId: publication } : {}),
    }));
    const command = new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries });
    // A server under load may answer with an error that is no document; sent twice is no harm here.
    const { Failed = [] } = await client.send(command).catch(() => client.send(command));
    if (Failed.length > 0) throw new Error(`Not published: ${JSON.stringify(Failed)}`);
  }
}

async function unsettled(client: SQSClient, queueUrl: string): Promise<number> {
  const { Attributes = {} } = await client.send(
    new GetQueueAttributesCommand({
      QueueUrl: queueUrl,
      AttributeNames: [
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
      ],
    }),
  );
  return Object.values(Attributes).reduce((sum, value) => sum + Number(value), 0);
}

async function killAndStart(own: OwnService<SqsFacts>): Promise<void> {
  await own.kill();
  await own.start();
}

/** fauxqs, which has a page for its queues, is in memory only. */
async function keepsMessages({ endpoint }: SqsFacts): Promise<boolean> {
  const response = await fetch(`${endpoint}/_fauxqs/queues`, { signal: AbortSignal.timeout(5_000) });
  await response.arrayBuffer();
  return !response.ok;
}
