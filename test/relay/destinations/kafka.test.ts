import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import net from "node:net";
import test, { type TestContext } from "node:test";
import { Kafka, logLevel, Partitioners } from "kafkajs";
import { isAgain, isRefused, isSent, type Answer } from "../../../src/relay/answer.ts";
import {
  kafkaDestination,
  type KafkaDestinationOptions,
} from "../../../src/relay/destinations/kafka/kafka.ts";
import { kafkajsProducer } from "../../../src/relay/destinations/kafka/kafkajs.ts";
import { effectOf } from "../../../src/relay/effect.ts";
import { isRejected } from "../../../src/message/message.ts";
import { kafka } from "../../../src/sources/kafka/kafka.ts";
import { kafkajsClient } from "../../sources/kafka/kafkajs-client.ts";
import { drive, testTopic, type TestTopic } from "../../sources/kafka/support.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import { testOutbox } from "../../outbox/support.ts";
import { effect, startRelay, taken, until } from "../support.ts";
import { producers } from "./kafka-clients.ts";
import { roundTrip } from "./round-trip.ts";
import { chosenClients } from "../../services/kafka-clients.ts";

type Given = NonNullable<Parameters<typeof taken>[0]>;

function deliverer(
  t: Scope,
  options: KafkaDestinationOptions,
): (list: readonly Given[]) => Promise<readonly (Answer | undefined)[]> {
  const destination = kafkaDestination(options);
  onTestEnd(t, () => destination.close?.());
  return (list) =>
    destination.deliverBatch!(
      list.map((more) => effectOf("there", taken(more))),
      { signal: new AbortController().signal },
    );
}

const kinds = (answers: readonly (Answer | undefined)[]): string =>
  answers
    .map((answer) => (answer === undefined ? "-" : isSent(answer) ? "s" : isRefused(answer) ? "r" : "a"))
    .join("");

const errorOf = (answer: Answer | undefined): string =>
  answer !== undefined && "error" in answer ? String(answer.error) : "";

async function sourceOf(t: TestContext, { brokers, topic, groupId }: TestTopic) {
  const client = await kafkajsClient(t, { brokers });
  return kafka({ client, topics: [topic], groupId, identity: "cloudevents" });
}

/** What is in a topic, as an inbox would receive it, once so many records are there. */
async function recordsOf(t: TestContext, at: TestTopic, count: number): Promise<readonly string[]> {
  const driven = await drive(t, await sourceOf(t, at));
  const deliveries = await driven.take(count);
  await driven.source.close();
  return deliveries.map(({ received }) =>
    isRejected(received) ? "rejected" : `${received.key} ${received.id}`,
  );
}

for (const [name, make] of chosenClients(producers)) {
  test(`${name}: what is sent twice is applied once by an inbox, and a key keeps its order`, async (t) => {
    const at = await testTopic(t, { numPartitions: 3 });
    const producer = at && (await make(t, at.brokers));
    if (producer === undefined) return;
    const rows = await roundTrip(t, {
      destination: kafkaDestination({ producer, topic: at!.topic }),
      source: await sourceOf(t, at!),
      ...{ copies: 2, keyed: true },
    });
    for (const { id, producer: from, key, type, body } of rows) {
      const { n } = JSON.parse(body!) as { n: number };
      assert.deepEqual(
        [id, from, key, type],
        [`receipt/${n}`, "orders", `account ${n % 3}`, "receipt.asked"],
      );
    }
  });

  test(`${name}: keys, headers and bodies arrive as they are, a tombstone too`, async (t) => {
    const at = await testTopic(t);
    const producer = at && (await make(t, at.brokers));
    if (producer === undefined) return;
    const deliver = deliverer(t, { producer, topic: at!.topic });
    const answers = await deliver([
      {
        id: "größe\u0001 1",
        key: "k 🦊",
        headers: { "x-a": "é", ["__proto__"]: "x", "": "y", ce_id: "other" },
      },
      { id: "gone", key: "g", payload: null },
      { id: "bytes", payload: Buffer.from([0, 255, 10]) },
    ]);
    assert.equal(kinds(answers), "sss", answers.map(errorOf).join());
    const driven = await drive(t, await sourceOf(t, at!));
    const [first, gone, bytes] = (await driven.take(3)).map(({ received }) => {
      assert.ok(!isRejected(received));
      return received;
    });
    assert.deepEqual([first!.id, first!.key, first!.text()], ["größe\u0001 1", "k 🦊", "{}"]);
    assert.equal(first!.headers["x-a"], "é");
    assert.deepEqual([gone!.id, gone!.key, gone!.bytes], ["gone", "g", null]);
    assert.deepEqual([...bytes!.bytes!], [0, 255, 10]);
    assert.equal(bytes!.headers["content-type"], "application/octet-stream");
  });

  test(`${name}: what is too large for the topic is refused alone, and only its own key waits behind it`, async (t) => {
    const at = await testTopic(t, { configEntries: [{ name: "max.message.bytes", value: "2000" }] });
    const producer = at && (await make(t, at.brokers));
    if (producer === undefined) return;
    const deliver = deliverer(t, { producer, topic: at!.topic });
    const list: Given[] = Array.from({ length: 12 }, (_, i) => ({ id: `m${i}`, key: `k${i % 4}` }));
    list[5] = { ...list[5], payload: Buffer.alloc(2_500) };
    let answers = await deliver(list);
    // A client that ends over a record that fails leaves open what became of those beside it.
    for (let i = 0; i < 10 && answers.some((answer) => answer !== undefined && isAgain(answer)); i++) {
      answers = await deliver(list);
    }
    assert.equal(kinds(answers), "sssssrsss-ss", answers.map(errorOf).join());
    const huge = await deliver([
      { id: "a", key: "a", payload: Buffer.alloc(1_200_000) },
      { id: "b", key: "b" },
    ]);
    assert.equal(kinds(huge), "rs", huge.map(errorOf).join());
  });

  test(`${name}: a topic that is not there pauses its destination, or holds up its own effects alone`, async (t) => {
    const at = await testTopic(t);
    const producer =
      at &&
      (await make(t, at.brokers, name === "confluent" ? { "topic.metadata.propagation.max.ms": 500 } : {}));
    if (producer === undefined) return;
    const nowhere = `nowhere-${randomUUID()}`;
    const deliver = deliverer(t, {
      producer,
      topic: ({ id }) => (id.startsWith("wrong") ? nowhere : id === "bad" ? "a b" : at!.topic),
    });
    const answers = await deliver([
      ...[
        { id: "a", key: "k" },
        { id: "wrong", key: "k" },
        { id: "b", key: "k" },
      ],
      ...[
        { id: "c", key: "l" },
        { id: "bad", key: "m" },
        { id: "d", key: "m" },
      ],
    ]);
    assert.equal(kinds(answers), "sa-sr-", answers.map(errorOf).join());
    const wrong = answers[1]!;
    assert.ok(isAgain(wrong) && wrong.fault === "effect", errorOf(wrong));
  });
}

test("kafkajs: after an answer that was lost nothing else is dropped in its place", async (t) => {
  const at = await testTopic(t);
  if (at === undefined) return;
  const [host = "", port = ""] = at.brokers[0]!.split(":");
  const proxy = await faultProxy(t, { host, port: Number(port) });
  const producer = kafkajsProducer(
    Kafka,
    {
      ...{ clientId: "test", brokers: at.brokers, logLevel: logLevel.NOTHING, requestTimeout: 2_000 },
      // The broker tells its own address; this way every connection goes through the proxy.
      socketFactory: ({ onConnect }: { onConnect: () => void }) =>
        net.connect({ host: "127.0.0.1", port: proxy.port }, onConnect),
    },
    { createPartitioner: Partitioners.DefaultPartitioner },
  );
  const place = await testOutbox(t);
  await startRelay(t, place, {
    there: kafkaDestination({ producer, topic: at.topic, retryDelayMs: 200, maxBatch: 1 }),
  });
  const commit = (...ids: string[]): Promise<unknown> =>
    place.commit((tx) =>
      place.outbox.sendAll(
        tx,
        ids.map((id) => effect(id, { key: id })),
      ),
    );
  await commit("first");
  await until(place.attempts, (attempts) => attempts.length === 1);
  proxy.dropReplyTo("lost-answer");
  await commit("lost-answer");
  await until(place.attempts, (attempts) => attempts.includes("lost-answer: ambiguous"));
  await commit("other-1", "other-2", "other-3");
  await until(place.waiting, (waiting) => waiting.length === 0);
  const records = await recordsOf(t, at, 6);
  assert.deepEqual(
    records.toSorted(),
    ["first", "lost-answer", "lost-answer", "other-1", "other-2", "other-3"].map((id) => `${id} ${id}`),
  );
});

test("options that break their rule are refused", async (t) => {
  const producer = (await producers["kafkajs"]!(t, ["127.0.0.1:1"]))!;
  for (const wrong of [
    { topic: "a" },
    { producer: {}, topic: "a" },
    { producer, topic: "a b" },
    { producer, topic: "a", maxRequestBytes: 1 },
  ]) {
    assert.throws(() => kafkaDestination(wrong as never), { code: "invalid-option" });
  }
});
