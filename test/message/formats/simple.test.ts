import assert from "node:assert/strict";
import { test } from "node:test";
import { InboxError } from "../../../src/errors.ts";
import { cloudevents } from "../../../src/message/formats/cloudevents-format.ts";
import { custom } from "../../../src/message/formats/custom.ts";
import type { Extracted } from "../../../src/message/formats/custom.ts";
import { firstOf } from "../../../src/message/formats/first-of.ts";
import type { Format } from "../../../src/message/formats/format.ts";
import { formatByName, formatNames, toFormat } from "../../../src/message/formats/formats.ts";
import { header } from "../../../src/message/formats/header.ts";
import { joinName, joinNameWithin } from "../../../src/message/formats/join-name.ts";
import { json } from "../../../src/message/formats/json.ts";
import { rabbitmq } from "../../../src/message/formats/rabbitmq.ts";
import { sqs } from "../../../src/message/formats/sqs.ts";
import { github, standardWebhooks } from "../../../src/message/formats/webhook-headers.ts";
import fc from "fast-check";
import { ignoreOne, readOne, refuseOne } from "./read.ts";

const isInvalidOption = (error: unknown): boolean =>
  error instanceof InboxError && error.code === "invalid-option";

test("RabbitMQ: the message_id property is the id; without it there is none, and no other property stands in", () => {
  const read = (properties: object) => readOne(rabbitmq(), { body: "{}", properties, channel: "orders" });
  const message = read({ messageId: "m-1", type: "placed", timestamp: 1772439330, deliveryTag: 7 });
  assert.deepEqual([message.producer, message.id, message.type], ["orders", "m-1", "placed"]);
  assert.equal(message.time!.getTime(), 1772439330_000);
  assert.equal(read({ messageId: "1", timestamp: new Date(5) }).time!.getTime(), 5);
  for (const properties of [{}, { deliveryTag: 7, correlationId: "c" }, null, undefined, { messageId: "" }]) {
    assert.equal(
      refuseOne(rabbitmq(), { body: "{}", properties, channel: "q" }).rejected.code,
      "no-identity",
    );
  }
  assert.equal(
    refuseOne(rabbitmq(), { body: "{}", properties: { messageId: 7 }, channel: "q" }).rejected.code,
    "invalid-identity",
  );
});

test("Standard Webhooks and GitHub: the header that every attempt repeats", () => {
  const attempt = (timestamp: string) =>
    readOne(standardWebhooks({ producer: "acme" }), {
      headers: {
        "Webhook-Id": "msg_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": `v1,${timestamp}`,
      },
      body: "{}",
    });
  assert.deepEqual([attempt("1").producer, attempt("1").id], ["acme", "msg_1"]);
  assert.equal(attempt("1").id, attempt("2").id);
  assert.equal(
    readOne(standardWebhooks(), { headers: { "svix-id": "msg_2" }, body: "{}", channel: "/hooks" }).id,
    "msg_2",
  );
  const delivery = { headers: { "x-github-delivery": "d-1", "x-github-event": "push" }, body: "{}" };
  const push = readOne(github(), delivery);
  assert.deepEqual([push.producer, push.id, push.type], ["github", "d-1", "push"]);
  assert.equal(refuseOne(github(), { headers: {}, body: "{}" }).rejected.code, "no-identity");
  assert.equal(
    refuseOne(standardWebhooks(), { headers: { "webhook-id": "1" }, body: "{}" }).rejected.code,
    "no-identity",
  );
});

test("JSON: fields by their pointers, whole numbers as they are written, never rounded", () => {
  const format = json({
    idPath: "/meta/id",
    producer: "p",
    keyPath: "/order",
    typePath: "/type",
    timePath: "/at",
    tenantPath: "/tenant",
  });
  const body =
    '{"meta":{"id":820982911946154508},"order":17,"type":"t","at":"2026-03-02T08:15:30Z","tenant":"eu"}';
  const message = readOne(format, { body });
  assert.deepEqual(
    [message.id, message.key, message.type, message.tenant, message.time!.toISOString()],
    ["820982911946154508", "17", "t", "eu", "2026-03-02T08:15:30.000Z"],
  );
  const ids = ["9007199254740993", "9007199254740992"].map(
    (id) => readOne(format, { body: `{"meta":{"id":${id}}}` }).id,
  );
  assert.notEqual(ids[0], ids[1]);
  assert.equal(readOne(json({ idPath: "/0/a~1b", producer: "p" }), { body: '[{"a/b":"x"}]' }).id, "x");
});

test("JSON: what is no id is refused, with the reason", () => {
  const refuse = (body: string | Uint8Array | null): string =>
    refuseOne(json({ idPath: "/id", producer: "p" }), { body }).rejected.code;
  for (const body of ["{}", '{"id":null}', '{"id":""}', '"id"', "[]", "7", '{"ID":"1"}']) {
    assert.match(refuse(body), /no-identity|malformed/, body);
  }
  for (const body of [
    '{"id":1.0}',
    '{"id":true}',
    '{"id":["1"]}',
    '{"id":{"toString":"1"}}',
    '{"id":"\\ud800"}',
    '{"id":"a\\u0000"}',
  ]) {
    assert.equal(refuse(body), "invalid-identity", body);
  }
  for (const body of ["{", "", null, Uint8Array.of(0xff), "[".repeat(1e6), '{"id":"1"}x'])
    assert.equal(refuse(body), "malformed");
  assert.equal(refuse('{"id":"a","id":"b"}'), "malformed");
  const nested = json({ idPath: "/meta/id", producer: "p" });
  assert.equal(refuseOne(nested, { body: '{"meta":{"id":"a","id":"b"}}' }).rejected.code, "malformed");
});

test("wrong pointers and header names fail at construction", () => {
  for (const idPath of ["id", "", undefined, 7])
    assert.throws(() => json({ idPath: idPath as string }), isInvalidOption);
  assert.throws(() => json({ idPath: "/id", keyPath: "key" }), /keyPath/);
  assert.throws(() => header({ idHeader: "" }), isInvalidOption);
  assert.throws(() => sqs({ idPath: "eventId" }), isInvalidOption);
  assert.throws(() => firstOf(), isInvalidOption);
});

test("header: id, key and type by name in any case; equal repeats are one, others none", () => {
  const format = header({ idHeader: "X-Event-Id", keyHeader: "x-key", typeHeader: "x-type", producer: "p" });
  const headers = { "x-event-id": ["a", Buffer.from("a")], "X-Key": "k", "x-type": "t" };
  const message = readOne(format, { headers, body: "{}" });
  assert.deepEqual([message.id, message.key, message.type], ["a", "k", "t"]);
  const conflicts = [
    { "x-event-id": "a", "X-Event-ID": "b" },
    { "x-event-id": ["a", "b"] },
    { "x-event-id": "a,b", "X-EVENT-ID": "a" },
  ];
  for (const headers of conflicts)
    assert.equal(refuseOne(format, { headers, body: "{}" }).rejected.code, "invalid-identity");
});

test("firstOf passes on only what bears no sign of a format: a broken id is never replaced by another kind of id", () => {
  const format = firstOf(
    cloudevents(),
    header({ idHeader: "x-id", producer: "p" }),
    json({ idPath: "/id", producer: "p" }),
  );
  assert.equal(readOne(format, { headers: { "x-id": "h" }, body: '{"id":"j"}' }).id, "h");
  assert.equal(readOne(format, { headers: {}, body: '{"id":"j"}' }).id, "j");
  assert.equal(
    refuseOne(format, { headers: { "x-id": "a\0" }, body: '{"id":"j"}' }).rejected.code,
    "invalid-identity",
  );
  const broken = { specversion: "1.0", ce: 1, type: "t", source: "s", id: 7 };
  assert.equal(
    refuseOne(format, { headers: { "x-id": "h" }, body: JSON.stringify(broken) }).rejected.code,
    "malformed",
  );
  assert.equal(refuseOne(format, { headers: {}, body: "{}" }).rejected.code, "no-identity");
});

test("a function of the user's own is checked like any format, and may fail", () => {
  const run = (extract: () => unknown): Format => custom(extract as () => Extracted);
  const delivery = { body: "{}", key: "k" };
  const message = readOne(
    run(() => ({ id: "1", producer: "p" })),
    delivery,
  );
  assert.deepEqual([message.id, message.key, message.text()], ["1", "k", "{}"]);
  assert.equal(
    ignoreOne(
      run(() => ({ ignore: "a ping" })),
      delivery,
    ),
    "a ping",
  );
  assert.equal(
    refuseOne(
      run(() => ({ id: undefined, producer: "p" })),
      delivery,
    ).rejected.code,
    "no-identity",
  );
  assert.equal(
    refuseOne(
      run(() => ({ id: 7, producer: "p" })),
      delivery,
    ).rejected.code,
    "invalid-identity",
  );
  for (const nothing of [undefined, null, "id"])
    assert.equal(
      refuseOne(
        run(() => nothing),
        delivery,
      ).rejected.code,
      "no-identity",
    );
  const failing = refuseOne(
    run(() => {
      throw new TypeError("no such\u001b[2J field");
    }),
    delivery,
  );
  assert.equal(failing.rejected.code, "malformed");
  assert.ok(!failing.rejected.text.includes("\u001b"));
});

test("every format has its name in the registry, and unknown names are refused with the list", () => {
  for (const name of formatNames) {
    if (name === "json" || name === "header") continue;
    assert.equal(formatByName(name).name, name);
    assert.equal(toFormat(name).name, name);
  }
  assert.equal(formatByName("json", { idPath: "/id" }).name, "json");
  assert.throws(() => formatByName("constructor" as "as4"), /cloudevents/);
  const own = custom(() => ({ ignore: "" }));
  assert.equal(toFormat(own), own);
});

test("joined names never run together", () => {
  const part = fc
    .array(fc.constantFrom("a", "|", "%", "7", "C", "25"), { maxLength: 4 })
    .map((list) => list.join(""));
  fc.assert(
    fc.property(
      fc.array(part, { minLength: 1, maxLength: 4 }),
      fc.array(part, { minLength: 1, maxLength: 4 }),
      (a, b) => {
        assert.equal(joinName(a) === joinName(b), JSON.stringify(a) === JSON.stringify(b));
        assert.equal(joinNameWithin(a, 1000), joinName(a));
      },
    ),
    { numRuns: 2000 },
  );
});
