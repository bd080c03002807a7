import assert from "node:assert/strict";
import test from "node:test";
import { formatByName } from "../../../src/message/formats/formats.ts";
import { isRejected } from "../../../src/message/message.ts";
import type { RawDelivery } from "../../../src/message/formats/format.ts";

function keyOf(name: "nats" | "rabbitmq", delivery: Partial<RawDelivery>): string | undefined {
  const properties = { messageId: "m1" };
  const headers = { "Nats-Msg-Id": "m1", ...(delivery.headers as object) };
  const [item] = formatByName(name).read({ body: "{}", channel: "c", properties, ...delivery, headers });
  assert.ok(item?.kind === "message" && !isRejected(item.received));
  return item.received.key;
}

const cases: readonly (readonly [what: string, delivery: Partial<RawDelivery>, key: string | undefined])[] = [
  ["nothing", {}, undefined],
  ["the attribute as AMQP writes it", { headers: { "cloudEvents:partitionkey": "50%" } }, "50%"],
  ["the attribute as NATS writes it", { headers: { "ce-partitionkey": "50%25" } }, "50%"],
  ["a list of values", { headers: { "Ce-PartitionKey": ["a", "a"] } }, "a"],
  ["bytes", { headers: { ce_partitionkey: Buffer.from("a") } }, "a"],
  ["what is not encoded", { headers: { "ce-partitionkey": "50%" } }, "50%"],
  ["what is no text", { headers: { "ce-partitionkey": { a: 1 } } }, undefined],
  ["the source's own key before it", { key: "b", headers: { "ce-partitionkey": "a" } }, "b"],
  ["another header", { headers: { "x-ce-partitionkey": "a" } }, undefined],
];

for (const [what, delivery, key] of cases) {
  test(`a message that is named by its broker has its key from ${what}`, () => {
    for (const name of ["nats", "rabbitmq"] as const) assert.equal(keyOf(name, delivery), key);
  });
}
