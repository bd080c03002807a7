import assert from "node:assert/strict";
import { test } from "node:test";
import { debeziumChange } from "../../../src/message/formats/debezium-change.ts";
import { debeziumOutbox } from "../../../src/message/formats/debezium-outbox.ts";
import { eventbridge } from "../../../src/message/formats/eventbridge.ts";
import { s3 } from "../../../src/message/formats/s3.ts";
import { sqs } from "../../../src/message/formats/sqs.ts";
import { identityDigest } from "../../../src/message/identity.ts";
import type { Message } from "../../../src/message/message.ts";
import { ignoreOne, readAll, readOne, refuseOne } from "./read.ts";

const digest = (message: Message): string => identityDigest("c", message);

const record = (changes: Record<string, unknown> = {}, object: Record<string, unknown> = {}): object => ({
  eventVersion: "2.1",
  eventSource: "aws:s3",
  eventTime: "2026-03-02T08:15:30.000Z",
  eventName: "ObjectCreated:Put",
  responseElements: { "x-amz-request-id": "R1" },
  s3: {
    bucket: { name: "in", arn: "arn:aws:s3:::in" },
    object: { key: "caf%C3%A9/a+b.csv", size: 1, eTag: "e", sequencer: "0055AED6DCD90281E5", ...object },
  },
  ...changes,
});
const notification = (...records: object[]): string => JSON.stringify({ Records: records });
const inSns = (message: string): string =>
  JSON.stringify({ Type: "Notification", MessageId: "m", TopicArn: "arn:topic", Message: message });

test("an S3 notification gives one message a record, with the object key decoded, the same through SNS", () => {
  const body = notification(record(), record({}, { sequencer: "0055AED6DCD90281E6" }));
  const [first, second, ...more] = readAll(s3(), { body });
  assert.deepEqual(more, []);
  assert.equal(first!.key, "arn:aws:s3:::in|café/a b.csv");
  assert.equal(first!.id, "ObjectCreated:Put|0055AED6DCD90281E5||café/a b.csv");
  assert.notEqual(digest(first!), digest(second!));
  const [throughSns] = readAll(s3(), { body: inSns(body) });
  assert.equal(digest(throughSns!), digest(first!));
  assert.deepEqual(throughSns!.fingerprint("j"), first!.fingerprint("j"));
  assert.deepEqual(first!.json(), record());
});

test("two records of one object differ by event, sequencer and version", () => {
  const variants = [
    record(),
    record({ eventName: "ObjectRemoved:Delete" }),
    record({}, { versionId: "v" }),
    record({}, { sequencer: "1" }),
  ];
  assert.equal(new Set(readAll(s3(), { body: notification(...variants) }).map(digest)).size, 4);
});

test("a long object key keeps its identity apart from another long one", () => {
  const keys = ["x", "y"].map((last) => "k".repeat(1023) + last);
  const messages = readAll(s3(), { body: notification(...keys.map((key) => record({}, { key }))) });
  assert.equal(new Set(messages.map(digest)).size, 2);
});

test("S3: the test event is ignored, a record without what names it is rejected, its neighbour is not", () => {
  assert.match(
    ignoreOne(s3(), { body: '{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"in"}' }),
    /test event/,
  );
  assert.match(ignoreOne(s3(), { body: inSns('{"Event":"s3:TestEvent"}') }), /test event/);
  const items = s3().read({ body: notification(record({ s3: {} }), record()) });
  assert.deepEqual(
    items.map((item) => item.kind === "message" && "rejected" in item.received),
    [true, false],
  );
  assert.equal(
    refuseOne(s3(), { body: notification(record({}, { key: "%zz" })) }).rejected.code,
    "malformed",
  );
  assert.equal(refuseOne(s3(), { body: "{}" }).rejected.code, "no-identity");
  assert.equal(refuseOne(s3(), { body: "[" }).rejected.code, "malformed");
});

const busEvent = {
  version: "0",
  id: "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
  "detail-type": "OrderPlaced",
  source: "shop.orders",
  account: "111122223333",
  time: "2026-03-02T08:15:30Z",
  region: "eu-west-1",
  resources: [],
  detail: { order: 12 },
};

test("an EventBridge event is named by its id, with its account and source", () => {
  const message = readOne(eventbridge(), { body: JSON.stringify(busEvent) });
  assert.deepEqual(
    [message.producer, message.id, message.type],
    ["111122223333|shop.orders", busEvent.id, "OrderPlaced"],
  );
  assert.equal(message.text(), '{"order":12}');
  assert.equal(
    refuseOne(eventbridge(), { body: JSON.stringify({ ...busEvent, id: undefined }) }).rejected.code,
    "no-identity",
  );
  assert.equal(
    refuseOne(eventbridge(), { body: JSON.stringify({ ...busEvent, id: 7 }) }).rejected.code,
    "malformed",
  );
  assert.equal(refuseOne(eventbridge(), { body: '{"id":"1"}' }).rejected.code, "no-identity");
});

test("SQS: a configured id that is missing or broken never falls back to the transport's", () => {
  const format = sqs({ idPath: "/eventId" });
  const refuse = (body: string): string =>
    refuseOne(format, { body, properties: { MessageId: "1" }, channel: "q" }).rejected.code;
  assert.equal(refuse('{"order":1}'), "no-identity");
  assert.equal(refuse('{"eventId":""}'), "no-identity");
  assert.equal(refuse('{"eventId":{"a":1}}'), "invalid-identity");
  assert.equal(refuse('{"eventId":1.5}'), "invalid-identity");
  assert.equal(refuse('{"eventId":"a","eventId":"b"}'), "malformed");
  assert.equal(refuse("hello"), "malformed");
  const big = readOne(format, { body: '{"eventId":9007199254740993}', channel: "q" });
  assert.equal(big.id, "9007199254740993");
  assert.equal(
    readOne(sqs(), {
      body: "hello",
      properties: { MessageId: "1", Attributes: { MessageGroupId: "g" } },
      channel: "q",
    }).key,
    "g",
  );
  assert.equal(refuseOne(sqs(), { body: "hello", channel: "q" }).rejected.code, "no-identity");
});

const change = (changes: Record<string, unknown> = {}, source: Record<string, unknown> = {}): string =>
  JSON.stringify({
    before: null,
    after: { id: 4, total: "39.98" },
    source: {
      connector: "postgresql",
      name: "shop",
      db: "shop",
      schema: "public",
      table: "order",
      ts_ms: 1772439330123,
      lsn: 24023128,
      ...source,
    },
    op: "u",
    ts_ms: 1772439330500,
    ...changes,
  });

test("a Debezium change is named by its place in the log; a re-emission with another ts_ms is a duplicate", () => {
  const read = (body: string, key: string | null = '{"id":4}'): Message =>
    readOne(debeziumChange(), { body, key, channel: "shop.public.order" });
  const first = read(change());
  const again = read(change({ ts_ms: 1772439999999 }), '{ "id": 4 }');
  assert.deepEqual([first.producer, first.id], ["postgresql|shop|shop|public|order", '24023128|u|{"id":4}']);
  assert.equal(digest(first), digest(again));
  assert.deepEqual(first.fingerprint("j-/ts_ms,/ts_ns,/ts_us"), again.fingerprint("j-/ts_ms,/ts_ns,/ts_us"));
  assert.equal(first.time!.getTime(), 1772439330123);
  const others = [
    read(change({}, { lsn: 24023129 })),
    read(change({ op: "d" })),
    read(change(), '{"id":5}'),
    read(change({}, { table: "line" })),
  ];
  assert.equal(new Set([first, ...others].map(digest)).size, 5);
  const wrapped = read(
    `{"schema":{"type":"struct"},"payload":${change()}}`,
    '{"schema":{},"payload":{"id":4}}',
  );
  assert.equal(digest(wrapped), digest(first));
  assert.equal(wrapped.text(), change());
});

test("a log position above 2^53 is read as it is written", () => {
  const body = change().replace("24023128", "9007199254740993");
  assert.match(readOne(debeziumChange(), { body, key: "k" }).id, /^9007199254740993\|/);
});

test("MySQL changes are named by file, position and row; an unknown connector has no identity", () => {
  const mysql = { connector: "mysql", file: "mysql-bin.000003", pos: 154, row: 0 };
  assert.equal(
    readOne(debeziumChange(), { body: change({}, mysql), key: "1" }).id,
    "mysql-bin.000003|154|0|u|1",
  );
  for (const connector of ["oracle", "toString"]) {
    assert.equal(
      refuseOne(debeziumChange(), { body: change({}, { connector }) }).rejected.code,
      "no-identity",
    );
  }
});

test("Debezium: tombstones, heartbeats and transaction markers are ignored by name, the rest is told apart", () => {
  const format = debeziumChange();
  assert.match(ignoreOne(format, { body: null, key: "1", channel: "t" }), /tombstone/);
  assert.match(ignoreOne(format, { body: '{"ts_ms":1}', channel: "__debezium-heartbeat.shop" }), /heartbeat/);
  assert.match(
    ignoreOne(format, {
      body: '{"status":"BEGIN","id":"571","event_count":null}',
      channel: "shop.transaction",
    }),
    /transaction/,
  );
  assert.equal(refuseOne(format, { body: '{"id":"1"}' }).rejected.code, "no-identity");
  assert.equal(refuseOne(format, { body: "{" }).rejected.code, "malformed");
});

test("Debezium outbox: JSON in a string, in a schema or bare is one payload; a string that is no JSON stays one", () => {
  const read = (body: string): Message =>
    readOne(debeziumOutbox(), { body, headers: { id: "1" }, channel: "outbox.event.order" });
  const inner = '{"a": 1.0}';
  for (const body of [
    inner,
    JSON.stringify(inner),
    `{"schema":{},"payload":${inner}}`,
    `{"schema":{},"payload":${JSON.stringify(inner)}}`,
  ]) {
    assert.equal(read(body).text(), inner);
  }
  for (const body of ['"hello"', '"{broken"', '{"payload":1}', "hello", '"7"'])
    assert.equal(read(body).text(), body);
  assert.equal(
    refuseOne(debeziumOutbox(), { body: "{}", headers: {}, channel: "t" }).rejected.code,
    "no-identity",
  );
  const uuid = debeziumOutbox({ idRule: "uuid" });
  assert.equal(
    refuseOne(uuid, { body: "{}", headers: { id: "1" }, channel: "t" }).rejected.code,
    "invalid-identity",
  );
});
