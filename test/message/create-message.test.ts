import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { InboxError } from "../../src/errors.ts";
import { createMessage, receiveMessage, withData } from "../../src/message/create-message.ts";
import { maxIdBytes, maxKeyBytes, maxProducerBytes, maxTenantBytes } from "../../src/message/limits.ts";
import { isRejected } from "../../src/message/message.ts";
import type { Message, MessageInput, RejectedMessage } from "../../src/message/message.ts";

const good = { producer: "/billing/eu", id: "100", payload: '{"amount":125.5}' };
const input = (changes: Record<string, unknown>): MessageInput => ({ ...good, ...changes });

const received = (changes: Record<string, unknown>): Message => {
  const message = receiveMessage(input(changes));
  assert.ok(!isRejected(message), isRejected(message) ? message.rejected.text : "");
  return message;
};

const rejected = (changes: Record<string, unknown>): RejectedMessage => {
  const message = receiveMessage(input(changes));
  assert.ok(isRejected(message));
  return message;
};

const codeOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof InboxError);
    return error.code;
  }
  assert.fail("nothing was thrown");
};

test("a message has what it was given, and defaults for the rest", () => {
  const message = createMessage(good);
  assert.deepEqual(
    [message.tenant, message.producer, message.id, message.key, message.type, message.time, message.data],
    ["", "/billing/eu", "100", undefined, undefined, undefined, undefined],
  );
  assert.deepEqual({ ...message.headers }, {});
  const time = new Date("2026-03-02T08:15:30Z");
  const full = createMessage(
    input({ tenant: "eu", key: "inv-7001", type: "issued", time, headers: { a: "1" } }),
  );
  assert.deepEqual([full.tenant, full.key, full.type, full.time], ["eu", "inv-7001", "issued", time]);
  assert.deepEqual(full.headers, { a: "1" });
});

test("a payload text is its UTF-8, a null payload is a tombstone, an empty one is neither", () => {
  const text = createMessage(input({ payload: "é" }));
  assert.deepEqual([...text.bytes!], [0xc3, 0xa9]);
  assert.equal(text.text(), "é");
  const tombstone = createMessage(input({ payload: null }));
  assert.deepEqual([tombstone.bytes, tombstone.text(), tombstone.json()], [null, null, null]);
  const empty = createMessage(input({ payload: "" }));
  assert.equal(empty.bytes!.length, 0);
  assert.equal(empty.text(), "");
  assert.equal(
    codeOf(() => empty.json()),
    "malformed",
  );
});

test("bytes that are no UTF-8 are a message; only reading them as text fails", () => {
  const message = createMessage(input({ payload: Uint8Array.of(0x69, 0xff) }));
  assert.equal(
    codeOf(() => message.text()),
    "malformed",
  );
  assert.equal(
    codeOf(() => message.json()),
    "malformed",
  );
  assert.deepEqual([...message.bytes!], [0x69, 0xff]);
});

test("JSON is parsed once, without a byte order mark, and the bytes keep it", () => {
  const message = createMessage(input({ payload: Buffer.from('\ufeff{"a":1}') }));
  assert.deepEqual(message.json(), { a: 1 });
  assert.equal(message.json(), message.json());
  assert.equal(message.bytes![0], 0xef);
  assert.equal(message.text()!.charCodeAt(0), 0xfeff);
});

test("the bytes are the caller's own, not a copy", () => {
  const payload = Buffer.from("{}");
  assert.equal(createMessage(input({ payload })).bytes, payload);
});

const identities: readonly (readonly [string, Record<string, unknown>, string])[] = [
  ["a missing id", { id: undefined }, "no-identity"],
  ["a null id", { id: null }, "no-identity"],
  ["an empty id", { id: "" }, "no-identity"],
  ["a missing producer", { producer: undefined }, "no-identity"],
  ["an empty producer", { producer: "" }, "no-identity"],
  ["a numeric id", { id: 100 }, "invalid-identity"],
  ["an id of bytes", { id: Buffer.from("100") }, "invalid-identity"],
  ["an object for an id", { id: { toString: () => "100" } }, "invalid-identity"],
  ["an array for a producer", { producer: ["a"] }, "invalid-identity"],
  ["a null tenant", { tenant: null }, "invalid-identity"],
  ["a NUL in the id", { id: "a\u0000b" }, "invalid-identity"],
  ["a lone surrogate in the id", { id: "id-\ud800" }, "invalid-identity"],
  ["a NUL in the producer", { producer: "a\u0000" }, "invalid-identity"],
  ["a lone surrogate in the tenant", { tenant: "\udc00" }, "invalid-identity"],
  ["an id over its limit", { id: "x".repeat(maxIdBytes + 1) }, "identity-too-long"],
  ["an id over its limit in bytes only", { id: "é".repeat(maxIdBytes / 2) + "x" }, "identity-too-long"],
  ["a producer over its limit", { producer: "x".repeat(maxProducerBytes + 1) }, "identity-too-long"],
  ["a tenant over its limit", { tenant: "x".repeat(maxTenantBytes + 1) }, "identity-too-long"],
];

for (const [what, changes, code] of identities) {
  test(`${what} is ${code}: thrown, or rejected with all that came`, () => {
    assert.equal(
      codeOf(() => createMessage(input(changes))),
      code,
    );
    const message = rejected({ ...changes, key: "k", type: "t", headers: { h: "1" } });
    assert.equal(message.rejected.code, code);
    assert.deepEqual(message.identity, {
      tenant: undefined,
      producer: good.producer,
      id: good.id,
      ...changes,
    });
    assert.equal(Buffer.from(message.bytes!).toString(), good.payload);
    assert.deepEqual([message.key, message.type, message.headers], ["k", "t", { h: "1" }]);
    assert.ok(message.rejected.text.length < 300 && message.rejected.text.isWellFormed());
    assert.ok(!message.rejected.text.includes("\0"));
  });
}

test("identities up to their limits are taken as they are: not trimmed, not normalised", () => {
  for (const id of [
    "x".repeat(maxIdBytes),
    "é".repeat(maxIdBytes / 2),
    " 100 ",
    "e\u0301",
    "00042",
    "\u{1f600}",
  ]) {
    assert.equal(createMessage(input({ id })).id, id);
  }
});

const contents: readonly (readonly [string, Record<string, unknown>])[] = [
  ["a missing payload", { payload: undefined }],
  ["an object for a payload", { payload: { amount: 1 } }],
  ["a payload text with a lone surrogate", { payload: "\ud800" }],
  ["a numeric key", { key: 4 }],
  ["a numeric type", { type: 4 }],
  ["a NUL in the type", { type: "\0" }],
  ["an invalid time", { time: new Date("never") }],
  ["a time that is a text", { time: "2026-03-02T08:15:30Z" }],
  ["headers that are a list", { headers: [] }],
  ["a header of bytes", { headers: { a: Buffer.from("1"), b: "2" } }],
];

for (const [what, changes] of contents) {
  test(`${what} is an invalid option for createMessage and malformed for receiveMessage`, () => {
    assert.equal(
      codeOf(() => createMessage(input(changes))),
      "invalid-option",
    );
    const message = rejected(changes);
    assert.equal(message.rejected.code, "malformed");
    assert.equal(message.identity.id, good.id);
  });
}

test("a rejected payload text with a lone surrogate loses nothing", () => {
  assert.equal(Buffer.from(rejected({ payload: "a\ud800" }).bytes!).toString("utf16le"), "a\ud800");
  assert.deepEqual(rejected({ headers: { a: Buffer.from("1"), b: "2" } }).headers, { b: "2" });
});

test("no key can reject a message: an over-long or ill-formed one is replaced by its digest, equal for equal keys", () => {
  const long = "k".repeat(maxKeyBytes + 1);
  const odd = ["\ud800", "\ud801", "a\0", long, `${long}x`];
  const keys = odd.map((key) => received({ key }).key!);
  assert.equal(new Set(keys).size, odd.length);
  for (const key of keys) assert.match(key, /^sha256:[0-9a-f]{64}$/);
  assert.equal(received({ key: `${long}` }).key, keys[3]);
  assert.equal(received({ key: "k".repeat(maxKeyBytes) }).key, "k".repeat(maxKeyBytes));
  assert.equal(received({ key: null }).key, undefined);
  assert.equal(received({ key: "" }).key, "");
});

test("nothing that can be given makes receiveMessage throw, and every answer is a full one", () => {
  const wild = fc.record(
    {
      tenant: fc.anything(),
      producer: fc.oneof(fc.string({ unit: "binary" }), fc.anything()),
      id: fc.oneof(fc.string({ unit: "binary" }), fc.anything()),
      payload: fc.oneof(fc.uint8Array(), fc.string(), fc.constant(null), fc.anything()),
      key: fc.anything(),
      type: fc.anything(),
      time: fc.oneof(fc.date(), fc.anything()),
      headers: fc.oneof(fc.dictionary(fc.string(), fc.string()), fc.anything()),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(wild, (candidate) => {
      const message = receiveMessage(candidate);
      if (isRejected(message)) {
        assert.equal(message.identity.id, candidate.id);
        assert.ok(message.rejected.text.length < 400 && !message.rejected.text.includes("object Object"));
      } else {
        assert.equal(message.id, candidate.id);
        assert.match(message.fingerprint("j").digest, /^([0-9a-f]{64})?$/);
      }
    }),
    { numRuns: 2000 },
  );
});

test("not even a candidate that is no object makes receiveMessage throw", () => {
  for (const nothing of [null, undefined, 7, "id"]) {
    const message = receiveMessage(nothing as never);
    assert.ok(isRejected(message) && message.rejected.code === "no-identity");
  }
});

test("data can be added to a message without touching it, and the two share what was computed", () => {
  const message = createMessage(good);
  const fingerprint = message.fingerprint("b");
  const withAmount = withData(message, { amount: 125.5 });
  assert.deepEqual([message.data, withAmount.data], [undefined, { amount: 125.5 }]);
  assert.equal(withAmount.fingerprint("b"), fingerprint);
  assert.equal(withAmount.json(), message.json());
  assert.deepEqual(
    [withAmount.id, withAmount.producer, withAmount.text()],
    [message.id, message.producer, message.text()],
  );
});

test("data can be added to anybody's own message", () => {
  const message = createMessage(input({ key: "k" }));
  const own: Message = {
    tenant: "",
    producer: "p",
    id: "1",
    key: "k",
    type: undefined,
    time: undefined,
    headers: {},
    data: undefined,
    bytes: Buffer.from("1"),
    text: () => "1",
    json: () => 1,
    fingerprint: (mode) => message.fingerprint(mode),
  };
  const copy = withData(own, 7);
  assert.deepEqual([copy.id, copy.key, copy.json(), copy.data], ["1", "k", 1, 7]);
});
