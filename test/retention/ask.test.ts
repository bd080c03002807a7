import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { CreateQueueCommand, DeleteQueueCommand, GetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect as connectNats, nanos } from "@nats-io/transport-node";
import { connect as connectAmqp } from "amqplib";
import { Kafka, logLevel } from "kafkajs";
import { askJetStream } from "../../src/retention/ask-jetstream.ts";
import { askKafka, kafkaFacts } from "../../src/retention/ask-kafka.ts";
import { askRabbitmq } from "../../src/retention/ask-rabbitmq.ts";
import { askSqs } from "../../src/retention/ask-sqs.ts";
import { service } from "../services/service.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";
import { sqsServer } from "./sqs-server.ts";

const day = 86_400_000;

for (const suffix of ["", ".fifo"]) {
  test(`SQS tells what a ${suffix === "" ? "standard" : "FIFO"} queue and its dead-letter queue keep`, async (t) => {
    const { client } = await sqsServer(t);
    const create = async (name: string, attributes: Record<string, string>): Promise<string> => {
      const fifo = suffix === "" ? {} : { FifoQueue: "true" };
      const { QueueUrl } = await client.send(
        new CreateQueueCommand({ QueueName: name + suffix, Attributes: { ...attributes, ...fifo } }),
      );
      onTestEnd(t, async () => void (await client.send(new DeleteQueueCommand({ QueueUrl }))));
      return QueueUrl!;
    };
    const name = `keeps-${randomUUID()}`;
    const dead = await create(`${name}-dead`, { MessageRetentionPeriod: String(14 * 86_400) });
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl: dead, AttributeNames: ["QueueArn"] }),
    );
    const alone = await create(`${name}-alone`, { MessageRetentionPeriod: "60", VisibilityTimeout: "7" });
    const queue = await create(name, {
      ...{ MessageRetentionPeriod: String(2 * 86_400), VisibilityTimeout: "40" },
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn: Attributes!["QueueArn"], maxReceiveCount: 3 }),
    });
    assert.deepEqual(await askSqs(client, queue), {
      ...{ name: `sqs:${name}${suffix}`, kind: "queue", retentionMs: 2 * day, redeliverAfterMs: 40_000 },
      deadLetter: { name: `sqs:${name}-dead${suffix}`, retentionMs: 14 * day, startsAnew: suffix !== "" },
    });
    const { retentionMs, deadLetter } = await askSqs(client, alone);
    assert.deepEqual([retentionMs, deadLetter], [60_000, undefined]);
    await assert.rejects(askSqs(client, `${alone}-no`), { code: "source-failed" });
  });
}

test("JetStream tells what a stream keeps, and which of them are logs", async (t) => {
  const facts = await service(t, "nats");
  if (facts === undefined) return;
  const connection = await connectNats({ servers: facts.url });
  onTestEnd(t, () => connection.close());
  const manager = await jetstreamManager(connection);
  const add = async (config: {
    max_age?: number;
    retention?: "limits" | "workqueue" | "interest";
  }): Promise<string> => {
    const name = `keeps-${randomUUID()}`;
    await manager.streams.add({ name, subjects: [`${name}.>`], ...config });
    onTestEnd(t, async () => void (await manager.streams.delete(name)));
    return name;
  };
  const log = await add({ max_age: nanos(3 * day) });
  await manager.consumers.add(log, { durable_name: "c", ack_policy: "explicit", ack_wait: nanos(45_000) });
  assert.deepEqual(await askJetStream(manager, log, "c"), {
    ...{ name: `nats:${log}`, kind: "log", retentionMs: 3 * day, redeliverAfterMs: 45_000 },
  });
  const work = await askJetStream(manager, await add({ retention: "workqueue" }));
  assert.deepEqual([work.kind, work.retentionMs], ["queue", Number.POSITIVE_INFINITY]);
  const interest = await askJetStream(manager, await add({ retention: "interest", max_age: nanos(1_000) }));
  assert.deepEqual([interest.kind, interest.retentionMs], ["queue", 1_000]);
  await assert.rejects(askJetStream(manager, `no-${randomUUID()}`));
});

test("RabbitMQ tells what a queue keeps, by arguments and policies, and where its dead letters end", async (t) => {
  const facts = await service(t, "rabbitmq");
  if (facts === undefined) return;
  if (!requireOrSkip(t, facts.management !== undefined, "the broker has no management plugin")) return;
  const { username, password } = new URL(facts.url);
  const management = {
    url: facts.management!,
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
  const connection = await connectAmqp(facts.url);
  onTestEnd(t, () => connection.close());
  const channel = await connection.createChannel();
  const name = `keeps-${randomUUID()}`;
  const queue = async (suffix: string, args: object): Promise<string> => {
    await channel.assertQueue(`${name}-${suffix}`, { durable: true, arguments: args });
    onTestEnd(t, async () => void (await channel.deleteQueue(`${name}-${suffix}`)));
    return `${name}-${suffix}`;
  };
  const exchange = async (suffix: string): Promise<string> => {
    await channel.assertExchange(`${name}-${suffix}`, "topic", { durable: true });
    onTestEnd(t, async () => void (await channel.deleteExchange(`${name}-${suffix}`)));
    return `${name}-${suffix}`;
  };
  const dead = await queue("dead", { "x-message-ttl": 10 * day });
  const deader = await queue("deader", { "x-message-ttl": 20 * day });
  const [first, second] = [await exchange("dlx"), await exchange("dlx2")];
  await channel.bindQueue(dead, first, "a");
  await channel.bindExchange(second, first, "#");
  await channel.bindQueue(deader, second, "b");

  const plain = await askRabbitmq(management, await queue("plain", {}));
  assert.deepEqual(
    [plain.kind, plain.retentionMs, plain.redeliverAfterMs, plain.deadLetter],
    ["queue", Number.POSITIVE_INFINITY, 1_800_000, undefined],
  );
  const full = await queue("full", { "x-message-ttl": 4 * day, "x-dead-letter-exchange": first });
  assert.deepEqual(await askRabbitmq(management, full), {
    ...{ name: `rabbitmq:${full}`, kind: "queue", retentionMs: 4 * day, redeliverAfterMs: 1_800_000 },
    deadLetter: { name: `rabbitmq:${dead}, ${deader}`, retentionMs: 20 * day, startsAnew: true },
  });
  const direct = await queue("direct", { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead });
  assert.equal((await askRabbitmq(management, direct)).deadLetter?.retentionMs, 10 * day);

  const policy = async (method: "PUT" | "DELETE"): Promise<void> => {
    const response = await fetch(new URL(`/api/policies/%2F/${name}`, facts.management), {
      method,
      headers: {
        authorization: `Basic ${Buffer.from(`${management.username}:${management.password}`).toString("base64")}`,
        "content-type": "application/json",
      },
      ...(method === "PUT"
        ? {
            body: JSON.stringify({
              pattern: `^${full}$`,
              definition: { "message-ttl": day },
              "apply-to": "queues",
            }),
          }
        : {}),
    });
    assert.ok(response.ok, `${method}: ${response.status}`);
  };
  await policy("PUT");
  onTestEnd(t, () => policy("DELETE"));
  // The broker applies a policy a moment after it took it.
  const deadline = performance.now() + 10_000;
  let retention = 0;
  do ({ retentionMs: retention } = await askRabbitmq(management, full));
  while (retention !== day && performance.now() < deadline);
  assert.equal(retention, day, "of argument and policy, the smaller one");

  const stream = await queue("stream", { "x-queue-type": "stream", "x-max-age": "7D" });
  const log = await askRabbitmq(management, stream);
  assert.deepEqual([log.kind, log.retentionMs], ["log", 7 * day]);
  await assert.rejects(askRabbitmq(management, `${name}-none`), { code: "source-failed" });
  await assert.rejects(askRabbitmq({ ...management, password: "wrong-one" }, full), (error: Error) => {
    assert.ok(!error.message.includes("wrong-one"));
    return true;
  });
});

test("Kafka tells what a topic keeps: a segment longer than its retention says, and for ever if it is compacted", async (t) => {
  const facts = await service(t, "kafka");
  if (facts === undefined) return;
  if (!requireOrSkip(t, facts.real, "the mock cluster has no configurations")) return;
  const kafka = new Kafka({ brokers: [...facts.brokers], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  onTestEnd(t, () => admin.disconnect());
  const make = async (entries: Record<string, string>): Promise<string> => {
    const topic = `keeps-${randomUUID()}`;
    await admin.createTopics({
      waitForLeaders: true,
      topics: [{ topic, configEntries: Object.entries(entries).map(([name, value]) => ({ name, value })) }],
    });
    onTestEnd(t, () => admin.deleteTopics({ topics: [topic] }));
    return topic;
  };
  const topic = await make({ "retention.ms": String(3 * day), "segment.ms": String(day) });
  assert.deepEqual(await askKafka(admin, topic), {
    name: `kafka:${topic}`,
    kind: "log",
    retentionMs: 4 * day,
  });
  const byDefault = await askKafka(admin, await make({}));
  assert.equal(byDefault.retentionMs, 14 * day, "7 days, and 7 days a segment");
  for (const entries of [{ "cleanup.policy": "compact" }, { "retention.ms": "-1" }]) {
    assert.equal((await askKafka(admin, await make(entries))).retentionMs, Number.POSITIVE_INFINITY);
  }
  const both = await make({
    "cleanup.policy": "compact,delete",
    "retention.ms": "1000",
    "segment.ms": "1000",
  });
  assert.equal((await askKafka(admin, both)).retentionMs, 2_000);
});

test("a topic's configuration without what decides is no answer", () => {
  assert.throws(() => kafkaFacts("t", {}), { code: "source-failed", message: /retention\.ms/ });
  assert.throws(() => kafkaFacts("t", { "retention.ms": "soon" }), { code: "source-failed" });
});
