import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
import { isAgain, isRefused, isSent, type Answer } from "../../../src/relay/answer.ts";
import { natsDestination, type NatsDestinationOptions } from "../../../src/relay/destinations/nats.ts";
import { effectOf } from "../../../src/relay/effect.ts";
import { nats } from "../../../src/sources/nats/nats.ts";
import { ownService, service } from "../../services/service.ts";
import { streamAt, testStream, type TestStream } from "../../sources/nats/support.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import { testOutbox } from "../../outbox/support.ts";
import { effect, longPatienceMs, startRelay, taken, until } from "../support.ts";
import { effectCount, roundTrip } from "./round-trip.ts";

type Options = Partial<Pick<NatsDestinationOptions, "subject" | "stream" | "answerTimeoutMs">>;

const destinationOf = (at: TestStream, options: Options = {}) =>
  natsDestination({ jetstream: at.jetstream, headers, subject: `${at.stream}.new`, ...options });

const deliverer =
  (at: TestStream, options: Options = {}) =>
  async (more?: Parameters<typeof taken>[0]): Promise<Answer> =>
    destinationOf(at, options).deliver!(effectOf("there", taken(more)), {
      signal: new AbortController().signal,
    });

const errorOf = (answer: Answer): string => ("error" in answer ? String(answer.error) : "");

const sourceOf = ({ jetstream, stream, consumer }: TestStream) => nats({ jetstream, stream, consumer });

test("what is sent twice is in the stream once, and applied once by an inbox with default options", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const rows = await roundTrip(t, {
    destination: destinationOf(at),
    source: sourceOf(at),
    ...{ copies: 1, keyed: true },
  });
  for (const { id, producer, key, body } of rows) {
    const { n } = JSON.parse(body!) as { n: number };
    assert.match(id, /^sha256-[0-9a-f]{32}$/);
    assert.deepEqual([producer, key], [`${at.stream}.new`, `account ${n % 3}`]);
  }
});

test("what is sent again when the stream has forgotten it is applied once", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const manager = await jetstreamManager(at.connection);
  // A server that compares nothing: the shortest window it takes, and each effect is sent again behind it.
  await manager.streams.update(at.stream, { duplicate_window: 100_000_000 });
  const destination = destinationOf(at);
  const sentAt = new Map<string, number>();
  const rows = await roundTrip(t, {
    destination: {
      ...destination,
      async deliver(given, context) {
        const before = sentAt.get(given.id);
        const left = before === undefined ? 0 : before + 300 - performance.now();
        if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
        sentAt.set(given.id, performance.now());
        return destination.deliver!(given, context);
      },
    },
    source: nats({
      ...{ jetstream: at.jetstream, stream: at.stream, consumer: at.consumer },
      identity: "cloudevents",
    }),
    ...{ copies: 2, keyed: false },
  });
  assert.equal(rows.length, effectCount);
  for (const { id, producer, type } of rows) {
    assert.match(id, /^receipt\/\d+$/);
    assert.deepEqual([producer, type], ["orders", "receipt.asked"]);
  }
});

test("one id to two destinations, of two producers and of two tenants is four messages of one stream", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const place = await testOutbox(t);
  const there = destinationOf(at);
  await startRelay(t, place, { there, elsewhere: destinationOf(at, { subject: `${at.stream}.elsewhere` }) });
  await place.commit((client) =>
    place.outbox.sendAll(client, [
      ...[effect("m1"), effect("m1", { destination: "elsewhere" })],
      ...[effect("m1", { tenant: "blue" }), effect("m1", { tenant: "red" })],
    ]),
  );
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.equal(await at.held(), 4);
});

test("a connection that goes while an answer is on its way: recorded as ambiguous, sent again, once in the stream", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const facts = (await service(t, "nats"))!;
  const { hostname, port } = new URL(facts.url);
  const proxy = await faultProxy(t, { host: hostname, port: Number(port) });
  const connection = await connect({
    ...{ servers: `127.0.0.1:${proxy.port}`, maxReconnectAttempts: -1, reconnectTimeWait: 20 },
  });
  onTestEnd(t, () => connection.close());
  const place = await testOutbox(t);
  const client = jetstream(connection);
  const options = { subject: `${at.stream}.new`, answerTimeoutMs: 1_000, retryDelayMs: 10 };
  await startRelay(t, place, { there: natsDestination({ jetstream: client, headers, ...options }) });
  proxy.dropReplyTo("lost-answer");
  await place.commit((tx) =>
    place.outbox.sendAll(tx, [effect("lost-answer", { key: "k" }), effect("behind", { key: "k" })]),
  );
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.deepEqual(await place.attempts(), ["lost-answer: ambiguous", "lost-answer: sent", "behind: sent"]);
  assert.equal(await at.held(), 2);
  const { rows } = await place.pool.query<{ result: string }>(
    "select result from outbox_attempt where effect_id = 'lost-answer' and outcome = 'sent'",
  );
  assert.equal(rows[0]?.result, JSON.stringify({ stream: at.stream, duplicate: true }));
});

test("a server that is away counts against no effect, and all is in the stream once when it is back", async (t) => {
  const server = await ownService(t, "nats");
  if (server === undefined) return;
  const at = await streamAt(t, server.facts);
  const place = await testOutbox(t);
  const destination = destinationOf(at, { answerTimeoutMs: 300 });
  const relay = await startRelay(t, place, { there: { ...destination, retryDelayMs: 10, maxAttempts: 1 } });
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
  await server.kill();
  await commit(20, 60);
  await until(
    () => relay.health()["there"]?.state,
    (state) => state === "paused",
  );
  await server.start();
  await until(place.waiting, (waiting) => waiting.length === 0, longPatienceMs);
  assert.equal(await at.held(), 60);
});

test("what is too large is refused, by the client and by the stream; a full stream is the destination's matter", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const deliver = deliverer(at);
  const large = await deliver({ payload: Buffer.alloc(1_100_000) });
  assert.ok(isRefused(large), errorOf(large));
  const headersAreLarge = await deliver({ headers: { "x-long": "x".repeat(70_000) } });
  assert.ok(isRefused(headersAreLarge), errorOf(headersAreLarge));
  const manager = await jetstreamManager(at.connection);
  await manager.streams.update(at.stream, { max_msg_size: 1_000 });
  const larger = await deliver({ payload: Buffer.alloc(1_001) });
  assert.ok(isRefused(larger), errorOf(larger));
  assert.ok(isSent(await deliver()));
  await manager.streams.update(at.stream, { max_msgs: 1, discard: "new" });
  const full = await deliver({ digest: "1".repeat(32) });
  assert.ok(isAgain(full) && full.fault === "destination" && !full.ambiguous, errorOf(full));
});

test("a subject that no stream takes, or another than it should, is never sent", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const nobody = await deliverer(at, { subject: `nobody.${at.stream}` })();
  assert.ok(isAgain(nobody) && nobody.fault === "destination" && !nobody.ambiguous, errorOf(nobody));
  const chosen = await deliverer(at, { subject: () => `nobody.${at.stream}` })();
  assert.ok(isAgain(chosen) && chosen.fault === "effect", errorOf(chosen));
  const other = await deliverer(at, { stream: "another" })();
  assert.ok(isAgain(other) && other.fault === "destination", errorOf(other));
  for (const subject of ["a..b", "a.*", "a b", ">", ""]) {
    assert.ok(isRefused(await deliverer(at, { subject: () => subject })()));
  }
  // Whoever answers a request that is no stream is not believed.
  const listener = at.connection.subscribe(`listener.${at.stream}`);
  void (async () => {
    for await (const message of listener) message.respond(new TextEncoder().encode("{}"));
  })();
  const answered = await deliverer(at, { subject: `listener.${at.stream}` })();
  assert.ok(isAgain(answered) && answered.ambiguous, errorOf(answered));
});

test("headers that the server would act on are not passed on, and no value makes another header", async (t: TestContext) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const answer = await deliverer(at)({
    ...{ id: "größe 1", key: "50%\n", payload: null },
    headers: {
      ...{ "Nats-Rollup": "all", "nats-msg-id": "x", "a b": "1", "": "2", "x:y": "3" },
      ...{ "x-lines": "a\r\nNats-Rollup: all", "x-umlaut": "ü", "ce-id": "other", ce_source: "other" },
    },
  });
  assert.ok(isSent(answer), errorOf(answer));
  const consumer = await at.jetstream.consumers.get(at.stream, at.consumer);
  const message = await consumer.next();
  assert.ok(message?.headers !== undefined);
  assert.deepEqual(Object.fromEntries([...message.headers].filter(([name]) => name !== "Nats-Msg-Id")), {
    "x-lines": ["a%0D%0ANats-Rollup:%20all"],
    "x-umlaut": ["ü"],
    "ce-id": ["gr%C3%B6%C3%9Fe%201"],
    "ce-source": ["orders"],
    "ce-specversion": ["1.0"],
    "ce-type": ["transactional-inbox.effect"],
    "ce-partitionkey": ["50%25%0A"],
  });
  assert.deepEqual(message.headers.values("Nats-Msg-Id"), [`sha256-${"0".repeat(32)}`]);
  message.ack();
});

test("options that break their rule are refused", () => {
  const client = { publish: () => Promise.reject(new Error("never")) };
  for (const wrong of [
    { jetstream: {}, headers, subject: "a" },
    { jetstream: client, subject: "a" },
    { jetstream: client, headers, subject: "a b" },
    { jetstream: client, headers, subject: "a", stream: "a.b" },
    { jetstream: client, headers, subject: "a", answerTimeoutMs: 0 },
  ]) {
    assert.throws(() => natsDestination(wrong as never), { code: "invalid-option" });
  }
});
