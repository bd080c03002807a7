import assert from "node:assert/strict";
import test from "node:test";
import { formats, type InboxError, type MessageHandler } from "../../../src/index.ts";
import { isRejected, type Message } from "../../../src/message/message.ts";
import { sourceSettings } from "../../../src/sources/sqs/options.ts";
import { createSqsSource } from "../../../src/sources/sqs/sqs-source.ts";
import { sqs } from "../../../src/sources/sqs/sqs.ts";
import { gate, recordEffect, testInbox } from "../../inbox/support.ts";
import { sampleJson } from "../../message/samples.ts";
import { faultyClient, serviceError } from "./faulty-client.ts";
import { idOf, inHand } from "./hand.ts";
import { body, clientOf, testQueue } from "./support.ts";

const identity = formats.sqs({ idPath: "/id" });
const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `m${i}`);

test("messages are applied once and deleted, duplicates too", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const { inbox, effects } = await testInbox(t);
  await queue.send([...ids(100), ...ids(100)].map((id) => body(id)));
  const run = inbox.run(sqs({ ...queue, identity }), recordEffect);
  await queue.empty();
  const { outcomes } = await run.stop();
  assert.deepEqual([outcomes.applied, outcomes.duplicate], [100, 100]);
  assert.deepEqual(await effects(), Object.fromEntries(ids(100).map((id) => [id, 1])));
});

test("a delete that fails is tried again by itself: the handler does not see the message a second time", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const { inbox, effects } = await testInbox(t);
  const client = faultyClient(queue.client);
  let failed = 0;
  client.fault("DeleteMessageBatch", () => (++failed <= 2 ? serviceError("ServiceUnavailable") : undefined));
  await queue.send(ids(10).map((id) => body(id)));
  const run = inbox.run(sqs({ client, queueUrl: queue.queueUrl, identity }), recordEffect);
  await queue.empty();
  const { deliveries, outcomes } = await run.stop();
  assert.ok(failed > 2);
  assert.deepEqual([deliveries, outcomes.applied, outcomes.failed], [10, 10, 0]);
  assert.deepEqual(Object.keys(await effects()).length, 10);
});

test("a batch of deletes is read entry by entry: what failed is deleted again, and only that", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const client = faultyClient(queue.client);
  await queue.send(ids(10).map((id) => body(id)));
  const hand = await inHand(t, sqs({ client, queueUrl: queue.queueUrl, identity, receivers: 1 }));
  const deliveries = await hand.take(10);
  let first = true;
  const deleted: number[] = [];
  client.fault("DeleteMessageBatch", (input) => {
    const entries = input["Entries"] as { Id: string }[];
    deleted.push(entries.length);
    if (!first) return undefined;
    first = false;
    // As SQS answers when it is throttled in part: nothing of this batch is deleted, and three entries say so.
    const isFailed = (_: unknown, i: number): boolean => i % 4 === 1;
    return {
      Successful: entries.filter((entry, i) => !isFailed(entry, i)).map(({ Id }) => ({ Id })),
      Failed: entries.filter(isFailed).map(({ Id }) => ({ Id, Code: "InternalError", SenderFault: false })),
    };
  });
  await hand.ack(...deliveries);
  await hand.stop();
  await hand.source.close();
  assert.deepEqual(deleted, [10, 3]);
});

test("a message whose delete never arrived is deleted by its new handle when it comes again, without being handed over", async (t) => {
  const queue = await testQueue(t, { visibilitySeconds: 1 });
  if (queue === undefined) return;
  const client = faultyClient(queue.client);
  await queue.send([body("m")]);
  const hand = await inHand(t, sqs({ client, queueUrl: queue.queueUrl, identity }));
  const delivery = await hand.next();
  client.fault("DeleteMessageBatch", () => serviceError("ServiceUnavailable"));
  await hand.ack(delivery);
  // Not extended any more, it comes again, and is known to be done.
  const receives = (): number => client.calls("ReceiveMessage").length;
  const before = client.calls("DeleteMessageBatch").length;
  const handleOf = (input: Record<string, unknown>): string =>
    (input["Entries"] as { ReceiptHandle: string }[])[0]!.ReceiptHandle;
  const old = handleOf(client.calls("DeleteMessageBatch").at(-1)!);
  while (
    client
      .calls("DeleteMessageBatch")
      .slice(before)
      .every((input) => handleOf(input) === old)
  ) {
    assert.ok(receives() < 50, "it came again");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  client.fault("DeleteMessageBatch", undefined);
  await queue.empty();
  assert.deepEqual(hand.waiting, []);
});

test("messages in hand stay invisible to others from their receive on, also when the runner seldom extends", async (t) => {
  // Long enough for a busy machine to extend it in time.
  const queue = await testQueue(t, { visibilitySeconds: 3 });
  if (queue === undefined) return;
  await queue.send(ids(15).map((id) => body(id)));
  // The runner extends every ten seconds only, too seldom for this queue.
  const hand = await inHand(t, sqs({ ...queue, identity }));
  const deliveries = await hand.take(15);
  const other = await inHand(t, sqs({ ...queue, client: clientOf(t, queue.facts), identity }));
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  assert.deepEqual(other.waiting, []);
  assert.deepEqual(hand.waiting, []);
  await hand.ack(...deliveries);
  await queue.empty();
});

test("a retry waits in whole seconds at the queue, never less than asked; a release is there at once", async (t) => {
  const queue = await testQueue(t, { visibilitySeconds: 30 });
  if (queue === undefined) return;
  const hand = await inHand(t, sqs({ ...queue, identity }));
  await queue.send([body("later"), body("now")]);
  const deliveries = await hand.take(2);
  const later = deliveries.find((delivery) => idOf(delivery) === "later")!;
  await hand.release(...deliveries.filter((delivery) => delivery !== later));
  const started = performance.now();
  await hand.retry(later, 1_200);
  const first = await hand.next();
  assert.equal(idOf(first), "now");
  assert.equal(first.redelivered, true, "SQS counts deliveries");
  const second = await hand.next();
  assert.equal(idOf(second), "later");
  assert.ok(performance.now() - started >= 1_200);
  await hand.ack(first, second);
  await queue.empty();
});

test("a stop ends the long poll and gives back at once what nobody has begun", async (t) => {
  const queue = await testQueue(t, { visibilitySeconds: 60 });
  if (queue === undefined) return;
  const { inbox } = await testInbox(t, { lanes: 1, maxBatch: 1 });
  await queue.send(ids(30).map((id) => body(id)));
  const { opened, open } = gate();
  let begun = 0;
  const handler: MessageHandler = async (message, context) => {
    begun++;
    await opened;
    await recordEffect(message, context);
  };
  const run = inbox.run(sqs({ ...queue, identity }), handler, { maxInHand: 30 });
  while (run.stats().deliveries < 30) await new Promise((resolve) => setTimeout(resolve, 10));
  const started = performance.now();
  const stopping = run.stop();
  open();
  const { outcomes } = await stopping;
  assert.ok(performance.now() - started < 15_000, "no long poll of 20 s is waited for");
  await queue.until({ waiting: 30 - outcomes.applied, inFlight: 0 });
  assert.equal(begun, outcomes.applied);
  assert.ok(outcomes.applied < 30);
});

test("it asks for no more than there is room for", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const client = faultyClient(queue.client);
  await queue.send(ids(40).map((id) => body(id)));
  const hand = await inHand(t, sqs({ client, queueUrl: queue.queueUrl, identity }), { maxInHand: 7 });
  let done = 0;
  while (done < 40) {
    assert.ok(hand.waiting.length <= 7, `${hand.waiting.length} in hand`);
    await hand.ack(...(await hand.take(Math.max(1, hand.waiting.length >> 1))));
    done = 40 - (await queue.counts().then(({ waiting, inFlight }) => waiting + inFlight));
  }
  const asked = client.calls("ReceiveMessage").map((input) => input["MaxNumberOfMessages"] as number);
  assert.ok(
    asked.every((count) => count >= 1 && count <= 7),
    asked.join(),
  );
  await queue.empty();
});

test("a message with many in it is deleted when all are done, and what needs no handling at once", async (t) => {
  const queue = await testQueue(t, { visibilitySeconds: 30 });
  if (queue === undefined) return;
  const record = (key: string): object => ({
    ...{ eventVersion: "2.1", eventSource: "aws:s3", eventName: "ObjectCreated:Put" },
    eventTime: "2026-01-01T00:00:00.000Z",
    s3: { bucket: { name: "b" }, object: { key, sequencer: `00${key}` } },
  });
  const source = sqs({ ...queue, identity: "s3" });
  const hand = await inHand(t, source);
  await queue.send([
    JSON.stringify({ Service: "Amazon S3", Event: "s3:TestEvent", Bucket: "b" }),
    JSON.stringify({ Records: [record("1"), record("2")] }),
  ]);
  const [one, two] = await hand.take(2);
  await hand.ack(one!);
  // The other message, which needs no handling, is deleted meanwhile.
  await queue.until({ waiting: 0, inFlight: 1 });
  await hand.retry(two!);
  const again = await hand.take(2);
  assert.deepEqual(again.map(idOf), [idOf(one!), idOf(two!)]);
  await hand.ack(...again);
  await queue.empty();
  assert.equal(Object.values(source.ignored()).length, 1);
});

test("ids: the producer's where there is one, else the SNS MessageId, else the queue's own, which is labelled", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const { Messages: messages } = sampleJson<{ Messages: { Body: string }[] }>("06-sqs-sns-envelope.json");
  const envelope = messages.map(({ Body }) => Body).find((text) => text.includes("Notification"))!;
  const { MessageId: snsId, TopicArn } = JSON.parse(envelope) as { MessageId: string; TopicArn: string };
  const byDefault = await inHand(t, sqs(queue));
  await queue.send([envelope, { body: "plain", attributes: { "event-type": "Paid" } }]);
  const deliveries = await byDefault.take(2);
  const read = deliveries.map(({ received }) => received as Message);
  const sns = read.find(({ id }) => id === snsId)!;
  const plain = read.find(({ id }) => id !== snsId)!;
  assert.deepEqual([sns.producer, sns.headers["inbox-id-rule"]], [TopicArn, undefined]);
  assert.deepEqual(
    [plain.producer, plain.headers["inbox-id-rule"], plain.headers["event-type"], plain.text()],
    [new URL(queue.queueUrl).pathname.split("/").at(-1), "transport-only", "Paid", "plain"],
  );
  assert.match(byDefault.warnings.join("\n"), /transport-only.*idPath/);
  await byDefault.ack(...deliveries);
  await byDefault.stop();

  const chosen = await inHand(t, sqs({ ...queue, identity }));
  await queue.send([body("e1"), "{}"]);
  const [first, second] = await chosen.take(2);
  assert.deepEqual([idOf(first!), idOf(second!)].sort(), ["e1", "no-identity"]);
  assert.ok([first!, second!].some(({ received }) => isRejected(received)));
  assert.deepEqual(chosen.warnings, []);
  await chosen.ack(first!, second!);
});

test("the start says what is wrong: no such queue, nobody there, a queue that gives up too soon", async (t) => {
  const queue = await testQueue(t, { maxReceiveCount: 3 });
  if (queue === undefined) return;
  const start = (options: Partial<Parameters<typeof sqs>[0]>): Promise<unknown> =>
    inHand(t, sqs({ ...queue, identity, ...options }));
  await assert.rejects(start({ queueUrl: `${queue.queueUrl}-none` }), (error: InboxError) => {
    assert.equal(error.code, "source-failed");
    assert.match(error.message, /^sqs:test-\w+-none cannot be received from: .*create the queue/);
    return true;
  });
  const away = clientOf(t, { ...queue.facts, endpoint: "http://127.0.0.1:1" });
  await assert.rejects(start({ client: away }), /cannot be received from: ECONNREFUSED\.$/);
  const hand = await inHand(t, sqs({ ...queue, identity }));
  assert.match(
    hand.warnings.join("\n"),
    /dead-letter queue after 3 deliveries.*maxReceiveCount to 10 or more/,
  );
});

test("nothing of an SDK error but its name is told: its message may hold the signed request", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const client = faultyClient(queue.client);
  const secret = serviceError("SignatureDoesNotMatch", "x-amz-security-token:SECRET");
  client.fault("GetQueueAttributes", () => secret);
  const failed = await inHand(t, sqs({ client, queueUrl: queue.queueUrl })).then(
    () => assert.fail("started"),
    (error: Error) => error,
  );
  assert.match(failed.message, /SignatureDoesNotMatch: the client's credentials/);
  const shown = `${failed.message} ${failed.stack} ${JSON.stringify(failed)} ${String(failed.cause)}`;
  assert.doesNotMatch(shown, /SECRET/);

  // Rights that are too narrow for the checks are no reason not to work.
  client.fault("GetQueueAttributes", () => serviceError("AccessDeniedException"));
  const hand = await inHand(t, sqs({ client, queueUrl: queue.queueUrl, identity }));
  await queue.send([body("m")]);
  await hand.ack(await hand.next());
  assert.match(hand.warnings.join("\n"), /sqs:GetQueueAttributes is not allowed/);
  assert.equal(client.calls("ReceiveMessage")[0]!["VisibilityTimeout"], 30);
  const refused = await hand.source.lag!().then(
    () => assert.fail("answered"),
    (error: Error) => error.message,
  );
  assert.match(refused, /AccessDeniedException/);
  client.fault("ReceiveMessage", () => secret);
  await queue.send([body("n")]);
  while (!hand.warnings.some((text) => text.includes("cannot be received"))) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.doesNotMatch(hand.warnings.join("\n"), /SECRET/);
});

test("a queue that is gone is asked for a minute, as a new one may not be seen at once; then the source ends with an error", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const client = faultyClient(queue.client);
  let now = 0;
  const settings = sourceSettings({ client, queueUrl: queue.queueUrl, identity });
  const hand = await inHand(t, createSqsSource(settings, { now: () => now, random: () => 0 }));
  let failures = 0;
  let over = false;
  void hand.ended.then(() => (over = true));
  client.fault("ReceiveMessage", () => {
    // A second passes with each failure.
    now += 1_000;
    failures++;
    if (failures === 1) return serviceError("QueueDoesNotExist");
    if (failures === 3) now += 60_000;
    assert.ok(failures <= 3 || over, "it goes on no longer than a minute");
    return serviceError("QueueDoesNotExist");
  });
  await queue.send([body("m")]);
  const error = await hand.ended;
  assert.equal((error as InboxError).code, "source-failed");
  assert.match(error!.message, /The queue is gone\..*create the queue/);
  assert.equal(failures, 3);
});

test("lag is what waits at the queue and what is in hand", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const hand = await inHand(t, sqs({ ...queue, identity, receivers: 1 }), { maxInHand: 5 });
  await queue.send(ids(20).map((id) => body(id)));
  await hand.take(5);
  assert.equal(await hand.source.lag!(), 20);
});

test("options that break their rules are refused by name", () => {
  const client = { send: async () => undefined };
  const queueUrl = "https://sqs.eu-central-1.amazonaws.com/1/orders";
  const wrong: readonly [object, RegExp][] = [
    [{ client: {}, queueUrl }, /client must be an SQSClient/],
    [{ client, queueUrl: "orders" }, /queueUrl must be the URL of a queue/],
    [{ client, queueUrl: undefined }, /queueUrl must be the URL of a queue/],
    [{ client, queueUrl, receivers: 0 }, /receivers must be a whole number from 1 to 50; got 0/],
    [{ client, queueUrl, visibilityTimeoutMs: 1_500 }, /visibilityTimeoutMs must be whole seconds/],
    [{ client, queueUrl, identity: "no-such" }, /no-such/],
  ];
  for (const [options, text] of wrong) {
    assert.throws(
      () => sqs(options as never),
      (error: InboxError) => {
        assert.equal(error.code, "invalid-option");
        assert.match(error.message, text);
        return true;
      },
    );
  }
  assert.equal(sqs({ client, queueUrl }).name, "sqs:orders");
});
