import assert from "node:assert/strict";
import { connect } from "amqplib";
import { randomUUID } from "node:crypto";
import test from "node:test";
import { Connection } from "rabbitmq-client";
import { isAgain, isRefused, isSent, type Answer } from "../../../src/relay/answer.ts";
import { effectOf } from "../../../src/relay/effect.ts";
import {
  rabbitmqDestination,
  type RabbitmqDestinationOptions,
} from "../../../src/relay/destinations/rabbitmq/rabbitmq.ts";
import type { RabbitmqPublishClient } from "../../../src/relay/destinations/rabbitmq/detect-client.ts";
import { rabbitmq } from "../../../src/sources/rabbitmq/rabbitmq.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import { ownService } from "../../services/service.ts";
import { classic, clientNames, clients, queueAt, testQueue } from "../../sources/rabbitmq/support.ts";
import { testOutbox } from "../../outbox/support.ts";
import { effect, longPatienceMs, startRelay, taken, until } from "../support.ts";
import { effectCount, roundTrip } from "./round-trip.ts";

/** Both clients, each as a user gives it. */
const publishClients = {
  amqplib:
    (url: string): RabbitmqPublishClient =>
    () =>
      connect(url),
  "rabbitmq-client":
    (url: string): RabbitmqPublishClient =>
    () =>
      new Connection({ url, retryLow: 50, retryHigh: 500 }),
};

/** Delivers one effect after another, or several at once, without a relay. */
function deliverer(
  t: Scope,
  options: RabbitmqDestinationOptions,
): (more?: Parameters<typeof taken>[0]) => Promise<Answer> {
  const destination = rabbitmqDestination(options);
  onTestEnd(t, () => destination.close?.());
  return async (more) =>
    destination.deliver!(effectOf("there", taken(more)), { signal: new AbortController().signal });
}

const errorOf = (answer: Answer): string => ("error" in answer ? String(answer.error) : "");

for (const name of clientNames) {
  const client = publishClients[name];

  test(`${name}: what is sent twice is applied once by an inbox with default options`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const rows = await roundTrip(t, {
      destination: rabbitmqDestination({ client: client(at.url), queue: at.queue }),
      source: rabbitmq({ client: clients[name](at.url), queue: at.queue, queueFacts: classic }),
      ...{ copies: 2, keyed: true },
    });
    assert.deepEqual(
      rows.map(({ id, producer, key, type }) => `${id} ${producer} ${key} ${type}`).sort(),
      Array.from(
        { length: effectCount },
        (_, i) => `receipt/${i} ${at.queue} account ${i % 3} receipt.asked`,
      ).sort(),
    );
  });

  test(`${name}: as a CloudEvent it names its producer too`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const rows = await roundTrip(t, {
      destination: rabbitmqDestination({ client: client(at.url), queue: at.queue }),
      source: rabbitmq({
        ...{ client: clients[name](at.url), queue: at.queue, queueFacts: classic },
        identity: "cloudevents",
      }),
      ...{ copies: 2, keyed: true },
    });
    for (const { id, producer, key, type, body } of rows) {
      const { n } = JSON.parse(body!) as { n: number };
      assert.deepEqual(
        [id, producer, key, type],
        [`receipt/${n}`, "orders", `account ${n % 3}`, "receipt.asked"],
      );
    }
  });

  test(`${name}: a message is persistent, and has the properties that AMQP knows`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const deliver = deliverer(t, { client: client(at.url), queue: at.queue });
    const time = new Date("2026-01-02T03:04:05.678Z");
    const headers = {
      "content-type": "application/json",
      "x-a": "é",
      CC: "elsewhere",
      "x-stream-offset": "1",
    };
    assert.ok(isSent(await deliver({ id: "m1", key: "k%", type: "t", time, headers })));
    const got = await at.admin.get(at.queue, { noAck: true });
    assert.ok(got !== false);
    const { deliveryMode, messageId, type, timestamp, contentType } = { ...got.properties } as Record<
      string,
      unknown
    >;
    assert.deepEqual(
      { deliveryMode, messageId, type, timestamp, contentType },
      { deliveryMode: 2, messageId: "m1", type: "t", timestamp: 1767323045, contentType: "application/json" },
    );
    assert.deepEqual(
      { ...got.properties.headers },
      {
        "x-a": "é",
        "cloudEvents:specversion": "1.0",
        "cloudEvents:id": "m1",
        "cloudEvents:source": "orders",
        "cloudEvents:type": "t",
        "cloudEvents:time": "2026-01-02T03:04:05.678Z",
        "cloudEvents:partitionkey": "k%",
      },
    );
    assert.equal(got.content.toString(), "{}");
  });

  test(`${name}: what no queue takes is refused if the effect chose the way, and else waits with the destination`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const nowhere = `nowhere-${randomUUID()}`;
    const chosen = deliverer(t, { client: client(at.url), queue: ({ key }) => key! });
    const [wrong, right] = await Promise.all([
      chosen({ id: "m1", key: nowhere }),
      chosen({ id: "m1", key: at.queue }),
    ]);
    assert.ok(isRefused(wrong) && isSent(right), "the same id on its way to two queues is told apart");
    assert.match(errorOf(wrong), /No queue takes it: NO.ROUTE/);
    const fixed = await deliverer(t, { client: client(at.url), queue: nowhere })();
    assert.ok(isAgain(fixed));
    assert.deepEqual([fixed.fault, fixed.ambiguous], ["destination", false]);
  });

  test(`${name}: an exchange that is not there refuses its own effect, and others go on`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const nowhere = `nowhere-${randomUUID()}`;
    const exchange = ({ id }: { id: string }): string => (id === "wrong" ? nowhere : "");
    const deliver = deliverer(t, { client: client(at.url), exchange, routingKey: at.queue });
    const answers = await Promise.all(["a", "b", "wrong", "c"].map((id) => deliver({ id })));
    assert.ok(isRefused(answers[2]!));
    assert.match(errorOf(answers[2]), /no exchange/);
    for (const index of [0, 1, 3]) {
      const answer = answers[index]!;
      assert.ok(isSent(answer) || (isAgain(answer) && answer.ambiguous && answer.fault === "destination"));
    }
    assert.ok(isSent(await deliver({ id: "d" })), "there is another channel");
    const fixed = await deliverer(t, { client: client(at.url), exchange: nowhere })();
    assert.ok(isAgain(fixed) && fixed.fault === "destination");
  });

  test(`${name}: what is in flight when the connection goes is ambiguous, and is there once in the end`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const proxy = await faultProxy(t, at);
    const place = await testOutbox(t);
    const url = at.url.replace(`:${at.port}`, `:${proxy.port}`);
    const relay = await startRelay(t, place, {
      there: rabbitmqDestination({ client: client(url), queue: at.queue, retryDelayMs: 10 }),
    });
    const commit = (id: string): Promise<unknown> =>
      place.commit((tx) => place.outbox.send(tx, effect(id, { key: "k" })));
    await commit("before");
    await until(place.attempts, (attempts) => attempts.length === 1);
    // The broker takes it, and its confirmation is lost with the connection.
    proxy.dropReplyTo("lost-answer");
    await commit("lost-answer");
    await commit("behind");
    await until(place.waiting, (waiting) => waiting.length === 0);
    assert.deepEqual(await place.attempts(), [
      ...["before: sent", "lost-answer: ambiguous", "lost-answer: sent", "behind: sent"],
    ]);
    const ids: unknown[] = [];
    for (;;) {
      const got = await at.admin.get(at.queue, { noAck: true });
      if (got === false) break;
      ids.push(got.properties.messageId);
    }
    assert.deepEqual(ids, ["before", "lost-answer", "lost-answer", "behind"]);
    assert.equal(relay.health()["there"]?.sent, 3);
  });

  test(`${name}: what AMQP cannot carry is refused before it is sent, and harms nobody`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const deliver = deliverer(t, { client: client(at.url), queue: at.queue });
    const wide = "é".repeat(200);
    const answers = await Promise.all([
      deliver({ id: "a", headers: { [wide]: "x" } }),
      deliver({ id: "b", headers: { long: "x".repeat(120_000) } }),
      deliver({ id: wide, type: wide, digest: "1".repeat(32) }),
      deliver({ id: "c", tenant: "blue", digest: "2".repeat(32), payload: null }),
      deliver({ id: "d", headers: { ["__proto__"]: "x", "": "y", "a\nb": "\u0000\n" } }),
      deliver({ id: "e", payload: Buffer.alloc(3_000_000, 1) }),
    ]);
    assert.ok(answers.slice(0, 2).every(isRefused));
    assert.ok(answers.slice(2).every(isSent), answers.map(errorOf).join("; "));
    const ids: unknown[] = [];
    for (let i = 0; i < 4; i++) {
      const got = await at.admin.get(at.queue, { noAck: true });
      if (got !== false) ids.push(got.properties.messageId);
    }
    assert.deepEqual(ids.sort(), ["d", "e", `sha256-${"1".repeat(32)}`, `sha256-${"2".repeat(32)}`]);
  });
}

test("a broker that is away counts against no effect, and all is sent when it is back", async (t) => {
  const broker = await ownService(t, "rabbitmq");
  if (broker === undefined) return;
  const at = await queueAt(t, broker.facts);
  const place = await testOutbox(t);
  const destination = rabbitmqDestination({
    client: publishClients.amqplib(broker.facts.url),
    queue: at.queue,
    retryDelayMs: 10,
  });
  const relay = await startRelay(t, place, { there: { ...destination, maxAttempts: 1 } });
  const ids = Array.from({ length: 60 }, (_, i) => `m${i}`);
  const commit = (from: number, to: number): Promise<unknown> =>
    place.commit((tx) =>
      place.outbox.sendAll(
        tx,
        ids.slice(from, to).map((id) => effect(id, { key: id.slice(-1) })),
      ),
    );
  await commit(0, 20);
  await until(place.waiting, (waiting) => waiting.length === 0);
  await broker.kill();
  await commit(20, 60);
  await until(
    () => relay.health()["there"]?.state,
    (state) => state === "paused",
  );
  await broker.start();
  // RabbitMQ 3.10 forgets a durable queue at times that was declared a moment before it was killed.
  await queueAt(t, broker.facts, {}, at.queue);
  await until(place.waiting, (waiting) => waiting.length === 0, longPatienceMs).catch((error: Error) => {
    error.message += `\n${JSON.stringify(relay.health())}\n${broker.log().slice(-2_000)}`;
    throw error;
  });
  const { rows } = await place.pool.query<{ n: number }>(
    "select count(*)::int as n from outbox_attempt where outcome = 'sent'",
  );
  assert.equal(rows[0]?.n, 60);
});

// What amqplib sends before it waits: the protocol's header, channel.open (class 20, method 10), confirm.select (85, 10).
for (const silentAfter of ["AMQP", "\u0000\u0014\u0000\u000a", "\u0000U\u0000\u000a"]) {
  test(`amqplib: a peer that is silent after ${JSON.stringify(silentAfter)} is left, and another connection made`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const proxy = await faultProxy(t, at);
    const url = at.url.replace(`:${at.port}`, `:${proxy.port}`);
    const options = { client: publishClients.amqplib(url), queue: at.queue };
    const deliver = deliverer(t, { ...options, connectTimeoutMs: 500 });
    const deliverOnce = async (): Promise<string[]> => {
      const errors: string[] = [];
      await until(deliver, (answer) => isSent(answer) || (errors.push(errorOf(answer)), false));
      return errors;
    };
    for (const round of ["the first connection", "a later one"]) {
      proxy.goSilentAfter(silentAfter);
      const errors = await deliverOnce();
      assert.ok(
        errors.some((text) => text.includes("within 500 ms")),
        `${round}: ${errors.join("; ")}`,
      );
      proxy.cutAll();
    }
  });
}

test("amqplib: a message that is larger than the broker takes is refused", async (t) => {
  const at = await testQueue(t);
  if (at === undefined) return;
  const deliver = deliverer(t, { client: publishClients.amqplib(at.url), queue: at.queue });
  const answer = await deliver({ payload: Buffer.alloc(134_217_729) });
  assert.ok(isRefused(answer), errorOf(answer));
  assert.ok(isSent(await deliver()));
});

test("options that break their rule are refused", () => {
  const client = () => Promise.reject(new Error("never"));
  for (const wrong of [
    { client },
    { client, queue: "q", exchange: "e" },
    { client, queue: 1 },
    { client: {}, queue: "q" },
    { client: { createConfirmChannel: () => undefined }, queue: "q" },
    { client, queue: "q", connectTimeoutMs: 0 },
  ]) {
    assert.throws(() => rabbitmqDestination(wrong as never), { code: "invalid-option" });
  }
});
