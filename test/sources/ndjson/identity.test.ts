import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import * as formats from "../../../src/message/formats/public.ts";
import type { Delivery } from "../../../src/sources/source.ts";
import { sampleJson } from "../../message/samples.ts";
import { ack, ids, memoryStore, ownDirectory, received, work } from "./harness.ts";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

test("lines take any format by its name: documents, and captures with their headers", async (t) => {
  const { Messages } = sampleJson<{ Messages: object[] }>("06-sqs-sns-envelope.json");
  const lines = (list: readonly unknown[]): Readable =>
    Readable.from([list.map((one) => `${JSON.stringify(one)}\n`).join("")]);
  const queue = await received(t, {
    from: lines(Messages.slice(0, 2)),
    identity: "sqs",
  });
  assert.equal(queue.length, 2);
  assert.equal(ids(queue)[0], ids(queue)[1], "SNS handed one message over twice");
  const { deliveries } = sampleJson<{ deliveries: object[] }>("10-webhook-shopify-like.json");
  const hooks = await received(t, { from: lines(deliveries), identity: "shopify" });
  const [first, retry, other] = ids(hooks);
  assert.equal(first, retry);
  assert.notEqual(first, other);
  const named = await received(t, {
    from: lines([{ eventId: 7 }]),
    identity: formats.json({ idPath: "/eventId", producer: "p" }),
  });
  assert.deepEqual(ids(named), ["7"]);
});

test("a line with several messages is settled, and its place passed, when the last of them is", async (t) => {
  const directory = ownDirectory(t);
  const from = join(directory, "events.ndjson");
  const event = (id: string): string => `{"specversion":"1.0","type":"t","source":"/s","id":"${id}"}`;
  const line = `[${event("1")},${event("2")},${event("3")}]`;
  writeFileSync(from, `${line}\n${event("4")}\n`);
  const held: Delivery[] = [];
  const { source, ended, delivered } = await work(
    t,
    { from, identity: "cloudevents", checkpoints: memoryStore() },
    (delivery, nth) => {
      if (nth !== 1) return ack;
      held.push(delivery);
      return undefined;
    },
  );
  await delivered(4);
  // The other three are settled in the turn they were delivered in.
  await new Promise(setImmediate);
  assert.deepEqual([source.progress().settledTo, source.progress().unsettled], [0, 1]);
  await source.settle([[held[0]!, ack]]);
  assert.equal(await ended, undefined);
  assert.equal(source.progress().settledTo, Buffer.byteLength(`${line}\n${event("4")}\n`));
});

test("what a format ignores is passed over and counted by its reason", async (t) => {
  const test = JSON.stringify({ Event: "s3:TestEvent" });
  const { source, ended, deliveries } = await work(t, {
    from: Readable.from([`${test}\n{"Records":[]}\n${test}\n`]),
    identity: "s3",
  });
  assert.equal(await ended, undefined);
  assert.equal(deliveries.length, 0);
  const { ignored, unsettled } = source.progress();
  assert.equal(unsettled, 0);
  assert.deepEqual(Object.values(ignored).sort(), [1, 2]);
});
