import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { capturedDeliveries } from "../../../src/message/formats/captured.ts";
import { identifyFile } from "../../../src/message/formats/identify.ts";
import type { Identified } from "../../../src/message/formats/identify.ts";
import { sampleBytes } from "../samples.ts";

const identify = (file: string | Uint8Array, options = {}): readonly Identified[] =>
  identifyFile(typeof file === "string" ? Buffer.from(file) : file, { channel: "file", ...options });

/** One word for each message: what the inbox would make of it. */
const verdicts = (found: readonly Identified[]): string[] =>
  found.map(({ result }) =>
    result.kind === "message" ? result.verdict.is : result.kind === "rejected" ? result.code : "ignored",
  );

const samples: readonly (readonly [string, string, readonly string[]])[] = [
  ["01-cloudevents-structured-http.json", "cloudevents", ["new", "new", "duplicate", "new", "new"]],
  ["02-cloudevents-binary-kafka.json", "cloudevents", ["new", "duplicate", "no-identity", "no-identity"]],
  ["03-debezium-outbox-kafka.json", "debezium-outbox", ["new", "new", "ignored", "ignored"]],
  ["06-sqs-sns-envelope.json", "sqs", ["new", "duplicate", "new", "new", "duplicate"]],
  [
    "08-webhook-stripe-like.json",
    "stripe",
    ["new", "duplicate", "duplicate", "new", "duplicate", "new", "duplicate"],
  ],
  ["10-webhook-shopify-like.json", "shopify", ["new", "duplicate", "new"]],
  ["11-edifact-una-release.edi", "edifact", ["new"]],
  ["13-edifact-multi-interchange.edi", "edifact", ["new", "new", "new", "ignored", "conflict", "malformed"]],
  ["15-as4-usermessage.xml", "as4", ["new"]],
  ["17-as4-xxe-attempt.xml", "as4", ["unsafe-xml"]],
  ["19-nats-jetstream.json", "nats", ["new", "duplicate", "no-identity"]],
];

for (const [name, format, expected] of samples) {
  test(`${name} is guessed to be ${format}, and every message of it gets the answer it should`, () => {
    const found = identify(sampleBytes(name));
    assert.deepEqual(verdicts(found), expected);
    for (const one of found) assert.deepEqual([one.format, typeof one.guessed], [format, "string"]);
  });
}

test("documents are guessed by what they hold", () => {
  const guesses: readonly (readonly [string, string])[] = [
    [
      '{"Records":[{"s3":{"bucket":{"arn":"b"},"object":{"key":"k","sequencer":"1"}},"eventName":"e"}]}',
      "s3",
    ],
    [
      '{"Type":"Notification","MessageId":"1","TopicArn":"t","Message":"{\\"Event\\":\\"s3:TestEvent\\"}"}',
      "s3",
    ],
    ['{"Type":"Notification","MessageId":"1","TopicArn":"t","Message":"hello"}', "sqs"],
    ['{"id":"1","detail-type":"t","source":"s","account":"1"}', "eventbridge"],
    ['{"schema":{},"payload":{"op":"c","source":{"connector":"mysql"}}}', "debezium-change"],
    ['{"id":"evt_1","object":"event"}', "stripe"],
    ['{"eventId":"1"}', "json"],
    ['{"headers":{"webhook-id":"1"},"body":"{}"}', "standard-webhooks"],
    ['{"headers":{"x-github-delivery":"1"},"body":"{}"}', "github"],
    ['{"headers":{},"properties":{"messageId":"1"},"body":"{}"}', "rabbitmq"],
    [`ISA*00*${" ".repeat(100)}`, "x12"],
    ["\ufeff  <a/>", "as4"],
    ["--b\r\nContent-Type: text/xml\r\n\r\n", "as4"],
    ['{"a":1}', "none"],
    ["hello", "none"],
    ["", "none"],
  ];
  for (const [file, format] of guesses) assert.equal(identify(file)[0]!.format, format, file);
});

test("a list of lines is read line by line, captures with their headers", () => {
  const event = (id: string): string =>
    JSON.stringify({ specversion: "1.0", id, source: "s", type: "t", data: 1 });
  assert.deepEqual(verdicts(identify(`${event("1")}\n${event("2")}\r\n\n${event("1")}\n{broken\n`)), [
    "new",
    "new",
    "duplicate",
    "no-identity",
  ]);
  const capture = {
    topic: "t",
    key: { type: "Buffer", data: [107] },
    headers: { ce_id: { type: "Buffer", data: [49] } },
    value: null,
  };
  const [delivery] = capturedDeliveries(Buffer.from(JSON.stringify(capture)), "file");
  assert.deepEqual(delivery, {
    body: null,
    channel: "t",
    headers: { ce_id: Buffer.from("1") },
    key: Buffer.from("k"),
    properties: undefined,
  });
});

test("the attributes of an SQS message are its headers", () => {
  const sent = {
    MessageId: "1",
    Body: "{}",
    MessageAttributes: { id: { DataType: "String", StringValue: "a-1" } },
  };
  const [delivery] = capturedDeliveries(Buffer.from(JSON.stringify({ Messages: [sent] })), "file");
  assert.deepEqual(delivery?.headers, { id: "a-1" });
  assert.deepEqual(delivery?.properties, sent);
});

test("a CloudEvent with subject and data is a document, not a capture", () => {
  const text = JSON.stringify({
    specversion: "1.0",
    id: "1",
    source: "s",
    type: "t",
    subject: "x",
    data: "hello",
  });
  const [one] = identify(text);
  assert.ok(one?.result.kind === "message");
  assert.equal(one.result.payloadBytes, '"hello"'.length);
});

test("the fingerprint is the format's own, or the one that was asked for, and a byte order mark is named", () => {
  const file = Buffer.from('\ufeff{"id":"1","sentAt":1}');
  const [one] = identify(file);
  assert.ok(one?.result.kind === "message");
  assert.equal(one.result.fingerprint.mode, "j");
  assert.match(one.result.why.fingerprint, /byte order mark/);
  const [except] = identify(file, { fingerprint: { by: "json", except: ["/sentAt"] } });
  assert.ok(except?.result.kind === "message");
  assert.match(except.result.why.fingerprint, /without \/sentAt/);
});

test("no file makes it throw", () => {
  const piece = fc.constantFrom(
    '{"headers":',
    '{"body":',
    '"a"',
    "{}",
    "[",
    "]",
    "}",
    ",",
    ":",
    '{"type":"Buffer","data":[1,"x"]}',
    '"valueB64"',
    '"deliveries"',
    '"Messages":[',
    "UNA",
    "ISA*",
    "<a>",
    "--b\n",
    "\n",
    "null",
    "7",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(piece, { maxLength: 8 }).map((list) => Buffer.from(list.join(""))),
        fc.uint8Array(),
        fc.json().map((text) => Buffer.from(text)),
      ),
      (file) => {
        assert.ok(identify(file).length > 0);
      },
    ),
    { numRuns: 2000 },
  );
});
