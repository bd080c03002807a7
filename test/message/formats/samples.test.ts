import assert from "node:assert/strict";
import { test } from "node:test";
import { as4 } from "../../../src/message/formats/as4.ts";
import { cloudevents } from "../../../src/message/formats/cloudevents-format.ts";
import { debeziumOutbox } from "../../../src/message/formats/debezium-outbox.ts";
import { edifact } from "../../../src/message/formats/edifact.ts";
import { header, nats } from "../../../src/message/formats/header.ts";
import { sqs } from "../../../src/message/formats/sqs.ts";
import { stripe } from "../../../src/message/formats/stripe.ts";
import { shopify } from "../../../src/message/formats/webhook-headers.ts";
import { identityDigest } from "../../../src/message/identity.ts";
import { isRejected } from "../../../src/message/message.ts";
import type { Message } from "../../../src/message/message.ts";
import { sampleBytes, sampleJson } from "../samples.ts";
import { ignoreOne, readAll, readOne, refuseOne, revive } from "./read.ts";

const digest = (message: Message): string => identityDigest("c", message);
const nameOf = ({ producer, id }: Message): [string, string] => [producer, id];

test("sample 01: CloudEvents over HTTP, structured and batch, whatever the case of the content type", () => {
  const { deliveries, expected } = sampleJson<{
    deliveries: { headers: Record<string, string>; rawBody: string }[];
    expected: { identity?: [string, string]; identities?: [string, string][] }[];
  }>("01-cloudevents-structured-http.json");
  for (const [i, { headers, rawBody }] of deliveries.entries()) {
    const messages = readAll(cloudevents(), { headers, body: Buffer.from(rawBody) });
    assert.deepEqual(messages.map(nameOf), expected[i]!.identities ?? [expected[i]!.identity]);
  }
});

test("sample 02: CloudEvents in Kafka headers: run, duplicate, and two without identity", () => {
  const { messages } = revive(
    sampleJson<{ topic: string; messages: { key: Buffer | null; valueB64: string; headers: object }[] }>(
      "02-cloudevents-binary-kafka.json",
    ),
  );
  const deliveries = messages.map(({ key, valueB64, headers }) => ({
    key,
    headers,
    body: Buffer.from(valueB64, "base64"),
    channel: "invoices",
  }));
  const [first, second] = deliveries.slice(0, 2).map((delivery) => readOne(cloudevents(), delivery));
  assert.deepEqual(nameOf(first!), ["/billing/eu", "evt-0001"]);
  assert.equal(digest(first!), digest(second!));
  assert.deepEqual(first!.fingerprint("b"), second!.fingerprint("b"));
  assert.equal(first!.key, "inv-7001");
  assert.equal(first!.text(), '{"invoice":"INV-7001","amount":125.50}');
  assert.equal(first!.headers["content-type"], "application/json");
  for (const delivery of deliveries.slice(2)) {
    const rejected = refuseOne(cloudevents(), delivery);
    assert.equal(rejected.rejected.code, "no-identity");
    assert.equal(rejected.bytes, delivery.body);
  }
});

test("sample 03: Debezium outbox: a re-emission is a duplicate, tombstone and heartbeat are ignored", () => {
  const { messages } = revive(
    sampleJson<{ messages: { topic: string; key: Buffer; headers: object; valueUtf8: string | null }[] }>(
      "03-debezium-outbox-kafka.json",
    ),
  );
  const deliveries = messages.map(({ topic, key, headers, valueUtf8 }) => ({
    channel: topic,
    key,
    headers,
    body: valueUtf8 === null ? null : Buffer.from(valueUtf8),
  }));
  const [first, again, tombstone, heartbeat] = deliveries;
  const uuid = debeziumOutbox({ idRule: "uuid" });
  const [a, b] = [readOne(uuid, first!), readOne(uuid, again!)];
  assert.equal(a.id, "4d47e190-0402-4048-bc2c-89dd54343cdc");
  assert.equal(digest(a), digest(b));
  assert.deepEqual(a.fingerprint("j"), b.fingerprint("j"));
  assert.equal(a.text(), b.text());
  assert.deepEqual([a.key, a.type, a.headers["inbox-id-rule"]], ["4", "OrderCreated", "uuid"]);
  // By default the case of an id counts.
  assert.notEqual(digest(readOne(debeziumOutbox(), first!)), digest(readOne(debeziumOutbox(), again!)));
  assert.match(ignoreOne(uuid, tombstone!), /tombstone/);
  assert.match(ignoreOne(uuid, heartbeat!), /heartbeat/);
});

test("sample 04: one id as different Kafka clients deliver it, and four that are none", () => {
  const { headers } = revive(
    sampleJson<{ headers: Record<string, unknown> }>("04-kafka-header-variants.json"),
  );
  const uuid = header({ idHeader: "id", idRule: "uuid", producer: "p" });
  const text = header({ idHeader: "id", producer: "p" });
  const delivery = (name: string): { headers: unknown; body: string } => ({
    headers: { id: headers[name] },
    body: "{}",
  });
  for (const name of ["a_buffer", "b_string", "c_array_of_one", "d_uuid_16_bytes"]) {
    assert.equal(readOne(uuid, delivery(name)).id, "3f2504e0-4f89-11d3-9a0c-0305e82c3301", name);
    if (name !== "d_uuid_16_bytes")
      assert.equal(readOne(text, delivery(name)).id, "3f2504e0-4f89-11d3-9a0c-0305e82c3301");
  }
  for (const name of ["e_array_conflict", "f_invalid_utf8", "g_nul_inside", "h_eachbatch_wrapped"]) {
    for (const format of [uuid, text])
      assert.equal(refuseOne(format, delivery(name)).rejected.code, "invalid-identity", name);
  }
  assert.equal(
    refuseOne(text, { headers: headers["h_eachbatch_wrapped"], body: "{}" }).rejected.code,
    "no-identity",
  );
});

test("sample 06: SNS in SQS, raw delivery, and the id of the business event", () => {
  type Sent = { MessageId: string; Body: string };
  const { Messages } = sampleJson<{ Messages: Sent[] }>("06-sqs-sns-envelope.json");
  const deliveries = Messages.map((message) => ({
    body: message.Body,
    properties: message,
    channel: "orders-queue",
  }));
  const [handed, handedAgain, published, raw, receivedAgain] = deliveries.map((delivery) =>
    readOne(sqs(), delivery),
  );
  assert.equal(digest(handed!), digest(handedAgain!));
  assert.equal(digest(handed!), digest(receivedAgain!));
  assert.notEqual(digest(handed!), digest(published!));
  assert.deepEqual(nameOf(handed!), [
    "arn:aws:sns:eu-west-1:000000000000:orders",
    "78d5bc6f-0000-5060-a75c-ef29b774ec66",
  ]);
  assert.equal(handed!.text(), '{"eventId":"ord-12-shipped","order":12}');
  assert.deepEqual(nameOf(raw!), ["orders-queue", "11111111-aaaa-4000-8000-000000000004"]);
  const [item] = sqs().read(deliveries[3]!);
  assert.ok(item?.kind === "message" && item.why.identity.includes("transport-only"));

  const byEvent = deliveries.map((delivery) =>
    readOne(sqs({ idPath: "/eventId", producer: "orders" }), delivery),
  );
  assert.deepEqual(
    byEvent.map(({ id }) => id),
    ["ord-12-shipped", "ord-12-shipped", "ord-12-shipped", "ord-13-shipped", "ord-12-shipped"],
  );
  assert.equal(digest(byEvent[0]!), digest(byEvent[2]!));
});

test("sample 08: a Stripe retry is a duplicate, another event is not, and the body is kept byte for byte", () => {
  const { deliveries } = sampleJson<{ deliveries: { headers: object; rawBody: string; expect: string }[] }>(
    "08-webhook-stripe-like.json",
  );
  const messages = deliveries.map(({ headers, rawBody }) =>
    readOne(stripe(), { headers, body: Buffer.from(rawBody) }),
  );
  assert.deepEqual(
    messages.map(({ id }) => id),
    [
      "evt_test_0001",
      "evt_test_0001",
      "evt_test_0001",
      "evt_test_0999",
      "evt_test_0001",
      "evt_test_0002",
      "evt_test_0001",
    ],
  );
  const [first, retry] = messages;
  assert.deepEqual(first!.fingerprint("b"), retry!.fingerprint("b"));
  assert.equal(first!.text(), deliveries[0]!.rawBody);
  assert.deepEqual([first!.producer, first!.key, first!.type], ["stripe", "in_test_9", "invoice.paid"]);
  assert.equal(first!.time!.getTime(), 1772439330_000);
});

test("sample 10: a Shopify retry is a duplicate, another subscription's delivery of the same event is not", () => {
  const { deliveries } = sampleJson<{ deliveries: { headers: object; rawBody: string }[] }>(
    "10-webhook-shopify-like.json",
  );
  const [first, retry, other] = deliveries.map(({ headers, rawBody }) =>
    readOne(shopify(), { headers, body: rawBody }),
  );
  assert.equal(digest(first!), digest(retry!));
  assert.notEqual(digest(first!), digest(other!));
  assert.deepEqual(nameOf(first!), ["example-shop.test", "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043"]);
  assert.equal(first!.time!.toISOString(), "2026-03-02T08:15:30.555Z");
});

test("sample 11: EDIFACT with released characters in its reference and false segments in a text", () => {
  const body = sampleBytes("11-edifact-una-release.edi");
  const message = readOne(edifact(), { body });
  assert.deepEqual(nameOf(message), ["9900000000017|14|9900000000024|14", "REF+26'03:1?"]);
  assert.equal(message.type, "ORDERS");
  assert.equal(Buffer.from(message.bytes!).toString("latin1"), body.toString("latin1").trimEnd());
});

test("sample 13: six interchanges in one file, each with its own answer", () => {
  const file = sampleBytes("13-edifact-multi-interchange.edi");
  const items = edifact().read({ body: file });
  assert.equal(items.length, 6);
  const [first, second, third, fourth, fifth, sixth] = items;
  const message = (item: (typeof items)[number] | undefined): Message => {
    assert.ok(item?.kind === "message" && !isRejected(item.received));
    return item.received;
  };
  assert.deepEqual(nameOf(message(first)), ["9900000000017|14|9900000000024|14", "00042"]);
  assert.deepEqual(nameOf(message(second)), ["9900000000017|14|9900000000024|14", "42"]);
  assert.deepEqual(nameOf(message(third)), ["9900000000017|14|9900000000031|14", "00042"]);
  assert.deepEqual(fourth, { kind: "ignored", reason: "an interchange with the test indicator" });
  assert.equal(digest(message(first)), digest(message(fifth)));
  assert.notDeepEqual(message(first).fingerprint("b"), message(fifth).fingerprint("b"));
  assert.ok(message(first).bytes!.includes(0xe9));
  assert.equal(message(first).headers["edifact-charset"], "UNOC");
  assert.ok(sixth?.kind === "message" && isRejected(sixth.received));
  assert.equal(sixth.received.rejected.code, "malformed");
  assert.deepEqual(sixth.received.identity, {
    tenant: undefined,
    producer: "9900000000017|14|9900000000024|14",
    id: "00044",
  });
  assert.ok(Buffer.from(sixth.received.bytes!).toString().endsWith("UNZ+2+00045'"));

  const yearly = readAll(edifact({ period: "day", test: "accept" }), {
    body: file.subarray(0, file.lastIndexOf("UNB")),
  });
  assert.deepEqual(
    yearly.map(({ producer }) => producer.slice(-17)),
    ["0024|14||20260302", "0024|14||20260302", "0031|14||20260302", "|14|test|20260302", "0024|14||20260303"],
  );
  assert.equal(new Set(yearly.map(digest)).size, 5);
});

test("sample 15: an AS4 user message; a resend with other prefix, timestamp and white space is a duplicate", () => {
  const text = sampleBytes("15-as4-usermessage.xml").toString();
  const resend = text
    .replaceAll("eb:", "ns3:")
    .replace("xmlns:eb=", "xmlns:ns3=")
    .replace("08:15:30.000Z", "08:45:31.000Z")
    .replace("<ns3:MessageId>", "<ns3:MessageId>\n     ")
    .replace("</ns3:MessageId>", " \t</ns3:MessageId>");
  assert.notEqual(text, resend);
  const [first, second] = [text, resend].map((body) => readOne(as4(), { body }));
  assert.deepEqual(nameOf(first!), [
    "urn:oasis:names:tc:ebcore:partyid-type:iso6523:0088|9900000000017",
    "b1f5c0de-0001-4a7e-9a55-0a1b2c3d4e5f@seller.example.test",
  ]);
  assert.equal(digest(first!), digest(second!));
  assert.deepEqual(first!.fingerprint("b"), second!.fingerprint("b"));
  assert.deepEqual([first!.key, first!.type], ["00012345", "SubmitOrder"]);
  assert.equal(first!.time!.toISOString(), "2026-03-02T08:15:30.000Z");
});

test("sample 17: a DOCTYPE is refused before anything is parsed", () => {
  const body = sampleBytes("17-as4-xxe-attempt.xml");
  const rejected = refuseOne(as4(), { body });
  assert.equal(rejected.rejected.code, "unsafe-xml");
  assert.equal(rejected.bytes, body);
  assert.equal(rejected.identity.id, undefined);
});

test("sample 19: JetStream redeliveries keep the id, in whatever case the header comes; without it there is none", () => {
  const { deliveries } = sampleJson<{ deliveries: { subject: string; headers: object; data: string }[] }>(
    "19-nats-jetstream.json",
  );
  const raw = deliveries.map(({ subject, headers, data }) => ({ channel: subject, headers, body: data }));
  const [first, again] = raw.slice(0, 2).map((delivery) => readOne(nats(), delivery));
  assert.deepEqual(nameOf(first!), ["orders.new", "ord-21-new"]);
  assert.equal(digest(first!), digest(again!));
  assert.equal(refuseOne(nats(), raw[2]!).rejected.code, "no-identity");
});
