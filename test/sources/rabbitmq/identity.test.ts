import assert from "node:assert/strict";
import test from "node:test";
import { isRejected, type Message, type Received } from "../../../src/message/message.ts";
import { json } from "../../../src/message/formats/json.ts";
import { clientNames, clients, drive, idOf, testQueue } from "./support.ts";

const message = (received: Received): Message => {
  assert.ok(!isRejected(received), JSON.stringify(received));
  return received;
};

for (const name of clientNames) {
  const client = clients[name];

  test(`${name}: a body arrives byte for byte, whatever its content type says`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const bodies: readonly (readonly [string, Buffer])[] = [
      ["application/json", Buffer.from('{ "amount": 12345678901234567890.10, "amount": 1, "b":"\\u00e9" }')],
      ["application/json", Buffer.from("no json at all")],
      ["text/plain", Buffer.from([0x66, 0xff, 0xfe, 0x00, 0x67])],
      ["application/octet-stream", Buffer.from([0, 1, 2, 255])],
      ["application/json", Buffer.alloc(0)],
      ["application/json", Buffer.from(JSON.stringify({ large: "x".repeat(300_000) }))],
    ];
    for (const [i, [contentType, body]] of bodies.entries()) {
      await at.publish(body, { messageId: `m${i}`, contentType });
    }
    const driven = await drive(t, { client: client(at.url), queue: at.queue });
    for (const [i, [contentType, body]] of bodies.entries()) {
      const delivery = await driven.next();
      assert.equal(idOf(delivery), `m${i}`);
      const { bytes } = message(delivery.received);
      assert.ok(bytes !== null && Buffer.compare(bytes, body) === 0, `${contentType}: ${String(bytes)}`);
      await driven.settle(delivery);
    }
  });

  test(`${name}: identity, producer, type, time and headers are taken from the properties`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const properties = { messageId: "id-1", type: "payment.made", timestamp: 1_700_000_000 };
    await at.publish("{}", { ...properties, headers: { customer: "c7", __proto__x: 1, list: ["a", "a"] } });
    const driven = await drive(t, {
      ...{ client: client(at.url), queue: at.queue, tenant: "acme" },
      key: { header: "Customer" },
    });
    const found = message((await driven.next()).received);
    assert.equal(found.id, "id-1");
    assert.equal(found.producer, at.queue);
    assert.equal(found.tenant, "acme");
    assert.equal(found.key, "c7");
    assert.equal(found.type, "payment.made");
    assert.equal(found.time?.toISOString(), "2023-11-14T22:13:20.000Z");
    assert.equal(found.headers["customer"], "c7");
  });

  test(`${name}: a message without message_id has no identity, and neither tag nor body stands in for it`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    await at.publish('{"temp":21}');
    await at.publish('{"temp":21}', { messageId: "" });
    const driven = await drive(t, { client: client(at.url), queue: at.queue });
    for (const delivery of await driven.take(2)) {
      assert.ok(isRejected(delivery.received));
      assert.equal(delivery.received.rejected.code, "no-identity");
      assert.equal(Buffer.from(delivery.received.bytes!).toString(), '{"temp":21}');
      await driven.settle(delivery, { kind: "ack", quarantined: true });
    }
    await driven.source.close();
    assert.equal(await at.ready(), 0);
  });

  test(`${name}: a delivery of several messages is acknowledged when all of them are`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const event = (id: string): object => ({
      specversion: "1.0",
      id,
      source: "/pay",
      type: "paid",
      data: {},
    });
    await at.publish(JSON.stringify([event("a"), event("b")]), {
      contentType: "application/cloudevents-batch+json",
    });
    await at.publish("[]", { contentType: "application/cloudevents-batch+json" });
    const driven = await drive(t, { client: client(at.url), queue: at.queue, identity: "cloudevents" });
    const [a, b] = await driven.take(2);
    assert.deepEqual([idOf(a!), idOf(b!)], ["a", "b"]);
    await driven.settle(a!);
    await driven.settle(b!, { kind: "retry", afterMs: 20 });
    const again = await driven.next();
    assert.equal(idOf(again), "b");
    assert.equal(driven.source.progress().unsettled, 1);
    await driven.settle(again);
    assert.equal(driven.source.progress().unsettled, 0);
    await driven.source.close();
    assert.equal(await at.ready(), 0);
  });

  test(`${name}: the key is the routing key or what a function says; a function that throws gives none and is told of`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const base = { client: client(at.url), queue: at.queue, identity: json({ idPath: "/id" }) };
    const publish = (): Promise<void> => at.publish('{"id":"x1","who":"w"}');
    const keyWith = async (key: Parameters<typeof drive>[1]["key"]): Promise<readonly [unknown, string]> => {
      await publish();
      const driven = await drive(t, { ...base, key });
      const delivery = await driven.next();
      await driven.settle(delivery);
      await driven.source.close();
      return [message(delivery.received).key, driven.warnings.join("\n")];
    };
    assert.deepEqual(await keyWith("routing-key"), [at.queue, ""]);
    assert.deepEqual(await keyWith(({ exchange, tag }) => `${exchange}/${tag}`), ["/1", ""]);
    const [key, warned] = await keyWith(() => {
      throw new Error("no key here");
    });
    assert.equal(key, undefined);
    assert.match(warned, /key function threw.*no key here/);
  });
}
