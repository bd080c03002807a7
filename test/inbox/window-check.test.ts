import assert from "node:assert/strict";
import { test } from "node:test";
import { CreateQueueCommand } from "@aws-sdk/client-sqs";
import { checkKept } from "../../src/inbox/check-kept.ts";
import { kafkaFacts } from "../../src/retention/retention.ts";
import type { KafkaClient } from "../../src/sources/kafka/client.ts";
import { kafka } from "../../src/sources/kafka/kafka.ts";
import { tellKept as tellKafka } from "../../src/sources/kafka/tell-kept.ts";
import type { NatsJetStream } from "../../src/sources/nats/client.ts";
import { nats } from "../../src/sources/nats/nats.ts";
import { tellKept as tellNats } from "../../src/sources/nats/tell-kept.ts";
import type { Intake, Kept } from "../../src/sources/source.ts";
import { sqs } from "../../src/sources/sqs/sqs.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { listSource } from "../pending/support.ts";
import { sqsServer } from "../retention/sqs-server.ts";
import { clients, identity, testTopic, topicAt } from "../sources/kafka/support.ts";
import { testStream } from "../sources/nats/support.ts";
import type { Scope } from "../support/cleanup.ts";
import { message, recordEffect, testInbox } from "./support.ts";

const day = 86_400_000;

const warnings = (t: Scope & { after(done: () => void): void }, of: string): string[] => {
  const texts: string[] = [];
  const hear = (event: unknown): void => {
    const { message: text } = event as { message: string };
    if (text.includes(of)) texts.push(text);
  };
  telemetry.warning.subscribe(hear);
  t.after(() => telemetry.warning.unsubscribe(hear));
  return texts;
};

test("what brokers keep is compared with the window", () => {
  const said = (windowMs: number | undefined, kept: readonly Kept[]): string => {
    let text = "";
    checkKept(kept, { windowMs, strict: false, warn: (warning) => (text = warning) });
    return text;
  };
  const week = { name: "sqs:orders", retentionMs: 7 * day };
  const dead = { name: "sqs:orders-dead", retentionMs: 14 * day };
  assert.equal(said(undefined, [{ name: "kafka:log", retentionMs: Infinity }]), "");
  assert.equal(said(7 * day, [week]), "");
  assert.match(said(7 * day - 1, [week]), /kept for 7 days, but sqs:orders keeps messages for 7 days/);
  assert.match(
    said(day, [{ name: "kafka:log", retentionMs: Infinity }]),
    /kafka:log keeps messages for ever/,
  );
  assert.match(
    said(10 * day, [{ ...week, deadLetter: dead }]),
    /dead letters sqs:orders-dead are kept for 14 days/,
  );
  assert.match(said(90_000, [week]), /kept for 1\.5 minutes/);
});

test("a run warns of it and goes on, or with strict begins nothing", async (t) => {
  const { inboxWith, effects } = await testInbox(t);
  const told = warnings(t, "kafka:payments");
  const inbox = inboxWith({ windowMs: day });
  const kept = async () => kafkaFacts("payments", { "retention.ms": String(7 * day), "segment.ms": "0" });
  const strict = inbox.run(listSource([message("m1")]), recordEffect, { kept, windowCheck: "strict" });
  await assert.rejects(strict.finished, { code: "window-too-short" });
  assert.deepEqual(await effects(), {});
  await inbox.run(listSource([message("m1")]), recordEffect, { kept }).finished;
  assert.deepEqual(await effects(), { m1: 1 });
  assert.equal(told.length, 1);
  assert.match(told[0]!, /Identities are kept for 1 day, but kafka:payments keeps messages for 7 days/);
  // Without a window nothing is asked.
  const asks = async (): Promise<never> => assert.fail("asked");
  await inboxWith({ consumer: "shipping" }).run(listSource([message("m1")]), recordEffect, { kept: asks })
    .finished;
  assert.throws(() => inbox.run(listSource([]), recordEffect, { windowCheck: "loud" as never }), {
    code: "invalid-option",
  });
});

test("SQS tells by itself what its queue keeps, and nothing is received where that is refused", async (t) => {
  const { inboxWith } = await testInbox(t);
  const { client } = await sqsServer(t);
  const { QueueUrl } = await client.send(
    new CreateQueueCommand({ QueueName: "kept", Attributes: { MessageRetentionPeriod: String(4 * 86_400) } }),
  );
  const source = () => sqs({ client, queueUrl: QueueUrl!, producer: "shop" } as Parameters<typeof sqs>[0]);
  const refused = inboxWith({ windowMs: day }).run(source(), recordEffect, { windowCheck: "strict" });
  await assert.rejects(refused.finished, (error: Error) => {
    assert.match(String(error.message), /sqs:kept keeps messages for 4 days/);
    return true;
  });
  const run = inboxWith({ windowMs: 5 * day }).run(source(), recordEffect, { windowCheck: "strict" });
  await run.health();
  await run.stop();
});

test("Kafka tells by itself what its topics keep, and the group is not joined where that is refused", async (t) => {
  const config = (entries: Readonly<Record<string, string>>) => ({
    configEntries: Object.entries(entries).map(([name, value]) => ({ name, value })),
  });
  const at = await testTopic(t, config({ "retention.ms": String(4 * day), "segment.ms": String(day) }));
  if (at === undefined) return;
  const compacted = await topicAt(t, at.brokers, config({ "cleanup.policy": "compact" }));
  const { inboxWith } = await testInbox(t);
  const client = (await clients["kafkajs"]!(t, at))!;
  const refusal = async (topics: readonly string[], windowMs: number, consumer: string): Promise<string> => {
    const source = kafka({ client, topics, groupId: at.groupId, identity });
    const run = inboxWith({ consumer, windowMs }).run(source, recordEffect, { windowCheck: "strict" });
    return run.finished.then(
      () => "",
      ({ code, message: text }: { code: string; message: string }) => `${code}: ${text}`,
    );
  };
  const short = await refusal([at.topic], 2 * day, "short");
  assert.match(short, /^window-too-short: .*keeps messages for 5 days/);
  const endless = await refusal([at.topic, compacted.topic], 6 * day, "endless");
  assert.match(endless, new RegExp(`but kafka:${compacted.topic} keeps messages for ever: `));
  const { groups } = await at.admin.describeGroups([at.groupId]);
  assert.deepEqual(
    groups.map(({ state }) => state),
    ["Dead"],
  );
});

test("JetStream tells by itself what its stream keeps", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const { inboxWith } = await testInbox(t);
  const { stream, consumer, jetstream } = at;
  const inbox = inboxWith({ windowMs: day });
  const run = inbox.run(nats({ stream, consumer, jetstream }), recordEffect, { windowCheck: "strict" });
  await assert.rejects(run.finished, { code: "window-too-short", message: /keeps messages for ever/ });
});

test("a broker that refuses to tell, and a client that cannot ask, are warnings that say what to do; no failures", async () => {
  const told: Kept[] = [];
  const said: string[] = [];
  const asks = {
    warn: (text: string) => void said.push(text),
    kept: (list: readonly Kept[]) => told.push(...list),
  };
  const intake = asks as unknown as Intake;
  const clientWith = (topicConfig?: KafkaClient["topicConfig"]): KafkaClient =>
    ({ name: "fake", ...(topicConfig && { topicConfig }) }) as KafkaClient;
  const refuse = () => Promise.reject(new Error("Not authorized to access topics"));
  await tellKafka(clientWith(refuse), ["orders"], intake);
  await tellKafka(clientWith(), ["orders"], intake);
  await tellKafka(
    clientWith(async (topic) => (topic === "orders" ? { "retention.ms": "soon" } : { "retention.ms": "-1" })),
    ["orders", "bills"],
    intake,
  );
  const streams = { info: refuse };
  const jetstream = { jetstreamManager: async () => ({ streams }) } as unknown as NatsJetStream;
  await tellNats(jetstream, "orders", intake);
  const queue = { info: async () => ({ config: { retention: "workqueue", max_age: 0 } }) };
  await tellNats({ jetstreamManager: async () => ({ streams: queue }) } as never, "orders", intake);
  assert.deepEqual(told, [{ name: "kafka:bills", retentionMs: Number.POSITIVE_INFINITY }]);
  assert.equal(said.length, 4);
  for (const [i, expected] of [
    /orders is not known \(Not authorized to access topics\).* Allow this user DescribeConfigs .*give the run `kept`/,
    /fake cannot ask/,
    /its configuration does not say/,
    /Not authorized.* Allow this user requests to \$JS\.API\.STREAM\.INFO\.orders/,
  ].entries())
    assert.match(said[i]!, expected);
  const unasked = { ...asks, kept: undefined } as unknown as Intake;
  await tellKafka(
    clientWith(() => assert.fail("asked")),
    ["orders"],
    unasked,
  );
  assert.equal(said.length, 4);
});
