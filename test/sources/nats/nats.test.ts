import { nanos } from "@nats-io/transport-node";
import assert from "node:assert/strict";
import test from "node:test";
import { isRejected } from "../../../src/message/message.ts";
import { isPublished, nats } from "../../../src/sources/nats/nats.ts";
import { ownService } from "../../services/service.ts";
import { drive, idOf, streamAt, testStream } from "./support.ts";

test("an acknowledgement is confirmed: the server holds nothing when settle has resolved", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  for (const id of ["a", "b", "c"]) await at.publish("{}", id);
  const driven = await drive(t, at);
  const list = [await driven.next(), await driven.next(), await driven.next()];
  assert.deepEqual(list.map(idOf), ["a", "b", "c"]);
  assert.equal(await driven.source.lag!(), 3);
  await driven.source.settle(list.map((delivery) => [delivery, { kind: "ack" }] as const));
  assert.equal(await at.held(), 0);
  assert.equal(await driven.source.lag!(), 0);
  assert.deepEqual(driven.source.progress(), { unsettled: 0, unconfirmed: 0, ignored: {} });
  assert.deepEqual(driven.warnings, []);
});

test("a retry comes again after its delay, marked as redelivered, and what is in quarantine never", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  await at.publish("{}", "a");
  const driven = await drive(t, at);
  const settledAt = performance.now();
  await driven.settle(await driven.next(), { kind: "retry", afterMs: 400 });
  const again = await driven.next();
  assert.ok(performance.now() - settledAt >= 390);
  assert.ok(again.redelivered);
  assert.equal(idOf(again), "a");
  await driven.settle(again, { kind: "ack", quarantined: true });
  await driven.source.close();
  assert.equal(await at.held(), 0);
});

test("deliveries in hand are extended past the server's ack_wait, and come again without that", async (t) => {
  const at = await testStream(t, { ack_wait: nanos(3_000) });
  if (at === undefined) return;
  await at.publish("{}", "a");
  const driven = await drive(t, at, {}, { extendEveryMs: 300 });
  const first = await driven.next();
  const extending = setInterval(() => void driven.source.extend!([first]), 300);
  await at.publish("{}", "b");
  const b = await driven.next();
  assert.equal(idOf(b), "b");
  await driven.settle(b);
  // Several pulls of a second each, and longer than the server waits.
  await new Promise((resolve) => setTimeout(resolve, 4_500));
  assert.equal(driven.untaken, 0);
  clearInterval(extending);
  const second = await driven.next();
  assert.equal(idOf(second), "a");
  assert.ok(second.redelivered);
  await driven.settle(second);
  assert.equal(await at.held(), 0);
});

test("what was released, or arrived while stopping, is with the server at once", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  for (const id of ["a", "b", "c"]) await at.publish("{}", id);
  const driven = await drive(t, at);
  const [a, b, c] = [await driven.next(), await driven.next(), await driven.next()];
  await driven.source.stop();
  await driven.source.settle([
    [a, { kind: "release" }],
    [b, { kind: "ack" }],
    [c, { kind: "release" }],
  ]);
  await driven.source.close();
  assert.equal(await at.held(), 2);
  const next = await drive(t, at);
  const again = [await next.next(), await next.next()];
  assert.deepEqual(again.map(idOf).sort(), ["a", "c"]);
  await next.source.settle(again.map((delivery) => [delivery, { kind: "ack" }] as const));
  assert.equal(await at.held(), 0);
});

test("identity is the Nats-Msg-Id; without one there is none, and bytes arrive as they are", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const body = '{ "amount": 12345678901234567890 }';
  await at.publish(body, "ord-1", { customer: "c7" });
  await at.publish(body);
  const driven = await drive(t, at, { key: { header: "Customer" }, tenant: "acme" });
  const [named, nameless] = [await driven.next(), await driven.next()];
  assert.ok(!isRejected(named.received));
  const { id, producer, tenant, key, bytes } = named.received;
  assert.deepEqual(
    { id, producer, tenant, key },
    { id: "ord-1", producer: `${at.stream}.new`, tenant: "acme", key: "c7" },
  );
  assert.equal(Buffer.from(bytes!).toString(), body);
  assert.ok(isRejected(nameless.received));
  assert.equal(nameless.received.rejected.code, "no-identity");
});

test("a publish answered duplicate: true is published, and the consumer that failed still gets its message", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const first = await at.publish("{}", "ord-21-new");
  const driven = await drive(t, at);
  await driven.settle(await driven.next(), { kind: "retry", afterMs: 200 });
  const again = await at.publish("{}", "ord-21-new");
  assert.equal(again.duplicate, true);
  assert.ok(isPublished(first) && isPublished(again));
  assert.equal(again.seq, first.seq);
  assert.ok(!isPublished({ stream: at.stream, seq: 0 }));
  const redelivered = await driven.next();
  assert.equal(idOf(redelivered), "ord-21-new");
  await driven.settle(redelivered);
  assert.equal(await at.held(), 0);
});

test("a consumer that drops, that waits too short, or that does not acknowledge each message is told of at the start", async (t) => {
  const at = await testStream(t, { max_deliver: 5, ack_wait: nanos(5_000) });
  if (at === undefined) return;
  const driven = await drive(t, at);
  assert.match(driven.warnings.join("\n"), /DROP messages: max_deliver is 5/);
  assert.match(driven.warnings.join("\n"), /waits 5000 ms .* extended every 10000 ms/);
  const all = await testStream(t, { ack_policy: "all" });
  await assert.rejects(drive(t, all!), { code: "source-failed", message: /ack_policy is all/ });
  await assert.rejects(drive(t, at, { consumer: "nobody" }), { code: "source-failed", message: /nobody/ });
});

test("a consumer that is deleted and stays away ends the source with an error that says so", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const driven = await drive(t, at, { missingConsumerTimeoutMs: 300 });
  await at.deleteConsumer();
  assert.match(String((await driven.ended)?.message), /consumer is gone/);
});

test("a connection that was closed for good ends the source with an error that says so", async (t) => {
  const at = await testStream(t);
  if (at === undefined) return;
  const driven = await drive(t, at);
  await at.connection.close();
  assert.match(String((await driven.ended)?.message), /connection was closed/);
});

test("goes on when the server was restarted", async (t) => {
  const own = await ownService(t, "nats");
  if (own === undefined) return;
  const at = await streamAt(t, own.facts);
  await at.publish("{}", "a");
  const driven = await drive(t, at);
  const a = await driven.next();
  await own.restart();
  await driven.settle(a);
  await at.publish("{}", "b");
  const ids: (string | undefined)[] = [];
  // An acknowledgement that was lost with the server brings its message again.
  while (!ids.includes("b")) {
    const delivery = await driven.next();
    ids.push(idOf(delivery));
    await driven.settle(delivery);
  }
});

test("wrong options fail where the source is made", () => {
  const jetstream = { consumers: { get: async () => undefined as never } };
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ jetstream: {} }, /jetstream must be/],
    [{ stream: "a.b" }, /stream must be a name/],
    [{ consumer: "" }, /consumer must be a name/],
    [{ key: "topic" }, /key must be/],
    [{ maxBatch: 0 }, /maxBatch must be/],
  ];
  for (const [given, message] of wrong) {
    const options = { jetstream, stream: "s", consumer: "c", ...given };
    assert.throws(() => nats(options), { code: "invalid-option", message });
  }
});
