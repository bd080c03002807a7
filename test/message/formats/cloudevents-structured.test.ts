import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readCloudEvent } from "../../../src/message/formats/cloudevents.ts";
import { identityDigest } from "../../../src/message/identity.ts";
import { isRejected } from "../../../src/message/message.ts";
import type { Message, RejectedMessage } from "../../../src/message/message.ts";
import { sampleJson } from "../samples.ts";

const event = {
  specversion: "1.0",
  id: "100",
  source: "/billing/eu",
  type: "com.example.invoice.issued",
  data: { amount: 125.5 },
};

const read = (document: unknown): Message => {
  const received = readCloudEvent(typeof document === "string" ? document : JSON.stringify(document));
  assert.ok(!isRejected(received), isRejected(received) ? received.rejected.text : "");
  return received;
};

const refuse = (document: unknown): RejectedMessage => {
  const text = typeof document === "string" ? document : JSON.stringify(document);
  const received = readCloudEvent(text);
  assert.ok(isRejected(received), `accepted ${text}`);
  assert.equal(Buffer.from(received.bytes!).toString(), text);
  return received;
};

interface Sample {
  readonly deliveries: readonly { readonly rawBody: string }[];
  readonly expected: readonly { readonly identity?: [string, string] }[];
}

test("sample 01: source and id name the event together, and a retry with a fresh traceparent is a duplicate", () => {
  const { deliveries, expected } = sampleJson<Sample>("01-cloudevents-structured-http.json");
  const [first, second, third] = deliveries.slice(0, 3).map(({ rawBody }) => read(rawBody));
  for (const [i, message] of [first!, second!, third!].entries()) {
    assert.deepEqual([message.producer, message.id], expected[i]!.identity);
  }
  const digest = (message: Message): string => identityDigest("accounting", message);
  assert.notEqual(digest(first!), digest(second!));
  assert.equal(digest(first!), digest(third!));
  assert.deepEqual(first!.fingerprint("b"), third!.fingerprint("b"));
  assert.equal(first!.text(), '{"invoice":"INV-7001","amount":125.5,"currency":"EUR"}');
  assert.equal(first!.key, "inv-7001");
  assert.equal(first!.type, "com.example.invoice.issued");
  assert.equal(first!.time!.toISOString(), "2026-03-02T08:15:30.123Z");
  assert.equal(first!.headers["ce-time"], "2026-03-02T08:15:30.123456Z");
  assert.equal(first!.headers["content-type"], "application/json");
  assert.notEqual(first!.headers["ce-traceparent"], third!.headers["ce-traceparent"]);
});

test("the payload is the data as it stands in the document, digits and spaces included", () => {
  const text =
    '{"data" : { "id" : 9007199254740993 , "x":"}\\"," } ,"specversion":"1.0","id":"1","source":"s","type":"t"}';
  assert.equal(read(text).text(), '{ "id" : 9007199254740993 , "x":"}\\"," }');
});

test("JSON data is parsed once, with its event; other data is parsed only as what it is", () => {
  const message = read({ ...event, data: { a: [1] } });
  assert.deepEqual(message.json(), { a: [1] });
  assert.equal(message.json(), message.json());
  assert.deepEqual(read({ ...event, datacontenttype: "text/plain", data: "[1]" }).json(), [1]);
  assert.equal(read({ ...event, data: "[1]" }).json(), "[1]");
  assert.throws(() => read({ ...event, datacontenttype: "text/plain", data: "hello" }).json(), /no JSON/);
});

test("text data of another content type is unescaped; JSON data that is a string stays JSON", () => {
  const data = "<a>\n</a>";
  assert.equal(read({ ...event, datacontenttype: "application/xml", data }).text(), data);
  for (const datacontenttype of ["application/json", "Application/Problem+JSON; charset=utf-8", undefined]) {
    assert.equal(read({ ...event, datacontenttype, data }).text(), JSON.stringify(data));
  }
  assert.equal(read({ ...event, datacontenttype: "application/jsonlines", data }).text(), data);
});

test("binary data is decoded, and is malformed if it is no base64 or stands beside other data", () => {
  const { data: _, ...bare } = event;
  assert.deepEqual([...read({ ...bare, data_base64: "AP+A" }).bytes!], [0x00, 0xff, 0x80]);
  assert.equal(read({ ...bare, data_base64: "" }).bytes!.length, 0);
  for (const data_base64 of ["A", "AP+", "AP+*", "A===", 7]) {
    assert.equal(refuse({ ...bare, data_base64 }).rejected.code, "malformed");
  }
  assert.equal(refuse({ ...event, data_base64: "AP+A" }).rejected.code, "malformed");
});

test("no data and null data are the same: a tombstone", () => {
  const { data: _, ...bare } = event;
  assert.equal(read(bare).bytes, null);
  assert.equal(read({ ...bare, data: null }).bytes, null);
});

test("the key is partitionkey, else subject, else none", () => {
  assert.equal(read({ ...event, subject: "s", partitionkey: "p" }).key, "p");
  assert.equal(read({ ...event, subject: "s" }).key, "s");
  assert.equal(read(event).key, undefined);
});

test("extension attributes are headers: texts as they are, numbers as they are written", () => {
  const { headers } = read(
    '{"specversion":"1.0","id":"1","source":"s","type":"t","n":9007199254740993,"b":true,"none":null}',
  );
  assert.deepEqual(headers, {
    "ce-specversion": "1.0",
    "ce-id": "1",
    "ce-source": "s",
    "ce-type": "t",
    "ce-n": "9007199254740993",
    "ce-b": "true",
  });
});

const refusals: readonly (readonly [string, unknown, string])[] = [
  ["without an id", { ...event, id: undefined }, "no-identity"],
  ["with an empty id", { ...event, id: "" }, "no-identity"],
  ["without a source", { ...event, source: undefined }, "no-identity"],
  ["with a null id", { ...event, id: null }, "no-identity"],
  ["with a numeric id", { ...event, id: 100 }, "malformed"],
  ["with an object for a source", { ...event, source: {} }, "malformed"],
  ["with a NUL in its id", { ...event, id: "a\0" }, "invalid-identity"],
  ["with a lone surrogate in its id", JSON.stringify({ ...event, id: "\ud800" }), "invalid-identity"],
  ["with an id over the limit", { ...event, id: "x".repeat(1025) }, "identity-too-long"],
  ["without a type", { ...event, type: undefined }, "malformed"],
  ["of another specversion", { ...event, specversion: "0.3" }, "malformed"],
  ["without a specversion", { ...event, specversion: undefined }, "malformed"],
  ["with a time that is none", { ...event, time: "2026-02-30T00:00:00Z" }, "malformed"],
  ["with a key twice", '{"specversion":"1.0","id":"1","id":"2","source":"s","type":"t"}', "malformed"],
  ["that is a list", [event], "malformed"],
  ["that is cut short", JSON.stringify(event).slice(0, -1), "malformed"],
  ["with broken data", '{"specversion":"1.0","id":"1","source":"s","type":"t","data":{bad}}', "malformed"],
  [
    "with data nested without end",
    `{"specversion":"1.0","id":"1","source":"s","type":"t","data":${"[".repeat(1e6)}`,
    "malformed",
  ],
  [
    "with its attributes in the prototype",
    '{"__proto__":{"specversion":"1.0","id":"1","source":"s","type":"t"}}',
    "malformed",
  ],
  ["that is empty", "", "malformed"],
];

for (const [what, document, code] of refusals) {
  test(`an event ${what} is rejected as ${code} and kept whole`, () => {
    assert.equal(refuse(document).rejected.code, code);
  });
}

test("bytes that are no UTF-8 are malformed, and kept", () => {
  const bytes = Buffer.concat([Buffer.from('{"id":"'), Buffer.of(0xff), Buffer.from('"}')]);
  const received = readCloudEvent(bytes);
  assert.ok(isRejected(received));
  assert.equal(received.rejected.code, "malformed");
  assert.equal(received.bytes, bytes);
});

test("a tenant comes from the connection, never from the event", () => {
  const received = readCloudEvent(JSON.stringify({ ...event, tenant: "other" }), { tenant: "eu" });
  assert.ok(!isRejected(received));
  assert.equal(received.tenant, "eu");
});

test("however an event is written again, its identity and its canonical fingerprint stay", () => {
  const attribute = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 20 })
    .filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(
      attribute,
      attribute,
      fc.jsonValue(),
      fc.nat(4),
      fc.boolean(),
      (id, source, data, indent, reversed) => {
        const written = Object.entries({ ...event, id, source, data: { data } });
        const again = Object.fromEntries([
          ...(reversed ? written.reverse() : written),
          ["traceparent", `00-${indent}`],
        ]);
        const a = read({ ...event, id, source, data: { data } });
        const b = read(JSON.stringify(again, null, indent));
        assert.equal(identityDigest("c", a), identityDigest("c", b));
        assert.deepEqual([b.producer, b.id], [source, id]);
        assert.deepEqual(a.fingerprint("j"), b.fingerprint("j"));
      },
    ),
  );
});

test("no document makes the reader throw", () => {
  const edits = fc.array(
    fc.tuple(fc.nat(), fc.constantFrom("", "{", "}", "[", '"', "\\", ",", ":", "\u0000", "null", "7")),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(edits, (list) => {
      let text = JSON.stringify({ ...event, time: "2026-03-02T08:15:30Z" });
      for (const [place, insert] of list) {
        const at = place % (text.length + 1);
        text = text.slice(0, at) + insert + text.slice(insert === "" ? at + 1 : at);
      }
      const received = readCloudEvent(text);
      if (!isRejected(received)) JSON.parse(text);
      else assert.equal(Buffer.from(received.bytes!).toString(), text);
    }),
    { numRuns: 3000 },
  );
});
