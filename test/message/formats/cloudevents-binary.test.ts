import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cloudevents } from "../../../src/message/formats/cloudevents-format.ts";
import { identityDigest } from "../../../src/message/identity.ts";
import { readAll, readOne, refuseOne } from "./read.ts";

const attributes = {
  specversion: "1.0",
  id: "evt-1",
  source: "/billing/eu",
  type: "issued",
  subject: "inv-1",
  time: "2026-03-02T08:15:30Z",
};
const prefixed = (prefix: string, changes: Record<string, unknown> = {}): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries({ ...attributes, ...changes }).map(([name, value]) => [prefix + name, value]),
  );

test("one event has one identity and one payload in every mode and over every transport", () => {
  const data = '{"amount":125.50}';
  const structured = JSON.stringify({ ...attributes, data: { amount: 125.5 } }).replace(
    '{"amount":125.5}',
    data,
  );
  const deliveries = [
    { headers: prefixed("ce_"), body: data },
    { headers: prefixed("ce-"), body: data },
    { headers: prefixed("Ce-"), body: data },
    { headers: prefixed("cloudEvents:"), body: data },
    { headers: prefixed("cloudEvents_", { time: new Date(attributes.time) }), body: data },
    {
      headers: new Map(
        Object.entries(prefixed("ce_")).map(([name, value]) => [name, Buffer.from(value as string)]),
      ),
      body: data,
    },
    {
      headers: Object.entries(prefixed("ce_")).map(([name, value]) => ({
        [name]: Buffer.from(value as string),
      })),
      body: Buffer.from(data),
    },
    { headers: Object.entries(prefixed("ce-")), body: data },
    { headers: { "content-type": "application/cloudevents+json" }, body: structured },
    {
      headers: { "Content-Type": Buffer.from("Application/CloudEvents+JSON; charset=UTF-8") },
      body: Buffer.from(structured),
    },
    { properties: { contentType: "application/cloudevents+json" }, body: structured },
    { headers: { "content-type": "application/cloudevents-batch+json" }, body: `[ ${structured} ]` },
    { body: structured },
    { body: `\n[${structured}]` },
  ];
  const messages = deliveries.map((delivery) => readOne(cloudevents(), delivery));
  for (const message of messages) {
    assert.deepEqual(
      [message.producer, message.id, message.type, message.key],
      ["/billing/eu", "evt-1", "issued", "inv-1"],
    );
    assert.equal(message.text(), data);
    assert.equal(message.headers["ce-source"], "/billing/eu");
    assert.equal(message.time!.getTime(), Date.parse(attributes.time));
  }
  assert.equal(new Set(messages.map((message) => identityDigest("c", message))).size, 1);
});

test("the key is partitionkey, else the broker's key, else the subject", () => {
  const keyed = (changes: object, key?: unknown): string | undefined =>
    readOne(cloudevents(), { headers: prefixed("ce_", { ...changes }), body: "", key }).key;
  assert.equal(keyed({ partitionkey: "p" }, Buffer.from("k")), "p");
  assert.equal(keyed({}, Buffer.from("k")), "k");
  assert.equal(keyed({}, null), "inv-1");
  assert.equal(keyed({}, Uint8Array.of(0xff, 0x00)), "base64:/wA=");
});

test("a null body is a tombstone with an identity", () => {
  assert.equal(readOne(cloudevents(), { headers: prefixed("ce_"), body: null }).bytes, null);
});

test("HTTP values are percent-decoded and unquoted; Kafka's are taken as they are", () => {
  const http = (id: string): string =>
    readOne(cloudevents(), { headers: prefixed("ce-", { id }), body: "" }).id;
  assert.equal(http("%E2%82%AC-1%20x"), "€-1 x");
  assert.equal(http("50%"), "50%");
  assert.equal(http("%ff"), "%ff");
  assert.equal(http('"a \\"b\\""'), 'a "b"');
  assert.equal(readOne(cloudevents(), { headers: prefixed("ce_", { id: "a%20b" }), body: "" }).id, "a%20b");
  assert.equal(
    refuseOne(cloudevents(), { headers: prefixed("ce-", { id: "a%00" }), body: "" }).rejected.code,
    "invalid-identity",
  );
});

const refusals: readonly (readonly [string, Record<string, unknown>, string])[] = [
  ["no id", { id: undefined }, "no-identity"],
  ["no source", { source: undefined }, "no-identity"],
  ["an empty list of ids", { id: [] }, "no-identity"],
  ["an id of bytes that are no UTF-8", { id: Buffer.of(0x69, 0xff) }, "invalid-identity"],
  ["two ids", { id: ["a", "b"] }, "invalid-identity"],
  ["a numeric id", { id: 7 }, "invalid-identity"],
  ["an object for an id", { id: { id: "a" } }, "invalid-identity"],
  ["a NUL in its id", { id: "a\0" }, "invalid-identity"],
  ["an id over the limit", { id: "a".repeat(1025) }, "identity-too-long"],
  ["no type", { type: undefined }, "malformed"],
  ["no specversion", { specversion: undefined }, "malformed"],
  ["another specversion", { specversion: "0.3" }, "malformed"],
  ["a time that is none", { time: "yesterday" }, "malformed"],
];

for (const [what, changes, code] of refusals) {
  test(`a binary event with ${what} is ${code}, and keeps body and headers`, () => {
    const rejected = refuseOne(cloudevents(), {
      headers: { ...prefixed("ce_", changes), extra: "1" },
      body: "data",
    });
    assert.equal(rejected.rejected.code, code);
    assert.equal(Buffer.from(rejected.bytes!).toString(), "data");
    assert.equal(rejected.headers["extra"], "1");
  });
}

test("the same attribute under two spellings must agree", () => {
  const twice = { ...prefixed("ce-"), "CE-ID": "other" };
  assert.equal(refuseOne(cloudevents(), { headers: twice, body: "" }).rejected.code, "invalid-identity");
  assert.equal(readOne(cloudevents(), { headers: { ...twice, "CE-ID": "evt-1" }, body: "" }).id, "evt-1");
});

test("what is no CloudEvent has no identity; another event format is malformed", () => {
  for (const body of ['{"id":"1"}', "hello", Uint8Array.of(0xff), null]) {
    assert.equal(refuseOne(cloudevents(), { headers: { id: "1" }, body }).rejected.code, "no-identity");
  }
  const avro = { headers: { "content-type": "application/cloudevents+avro" }, body: "" };
  assert.equal(refuseOne(cloudevents(), avro).rejected.code, "malformed");
});

test("a batch rejects its bad events one by one", () => {
  const event = JSON.stringify({ ...attributes, data: 1 });
  const headers = { "content-type": "application/cloudevents-batch+json" };
  const items = cloudevents().read({
    headers,
    body: `[${event},{"id":1},7,${event.replace("evt-1", "evt-2")}]`,
  });
  assert.deepEqual(
    items.map(
      (item) =>
        item.kind === "message" &&
        ("rejected" in item.received ? item.received.rejected.code : item.received.id),
    ),
    ["evt-1", "malformed", "malformed", "evt-2"],
  );
  assert.equal(refuseOne(cloudevents(), { headers, body: `[${event},]` }).rejected.code, "malformed");
  assert.equal(refuseOne(cloudevents(), { headers, body: "{}" }).rejected.code, "malformed");
  assert.deepEqual(readAll(cloudevents(), { headers, body: "[]" }), []);
});

test("binary and structured mode agree on every event that both can carry", () => {
  const text = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 30 })
    .filter((value) => !value.includes("\0"));
  fc.assert(
    fc.property(text, text, fc.json(), (id, source, data) => {
      const event = { ...attributes, id, source };
      const binary = readOne(cloudevents(), {
        headers: prefixed("ce_", { id: Buffer.from(id), source }),
        body: data,
      });
      const http = readOne(cloudevents(), {
        headers: prefixed("ce-", { id: encodeURIComponent(id), source: encodeURIComponent(source) }),
        body: data,
      });
      const structured = readOne(cloudevents(), {
        body: `${JSON.stringify(event).slice(0, -1)},"data":${data}}`,
      });
      assert.equal(identityDigest("c", binary), identityDigest("c", structured));
      assert.equal(identityDigest("c", http), identityDigest("c", structured));
      // A null is no data in structured mode.
      if (data !== "null") assert.deepEqual(binary.fingerprint("b"), structured.fingerprint("b"));
    }),
  );
});
