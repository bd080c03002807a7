import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { firstOf } from "../../../src/message/formats/first-of.ts";
import type { Format, RawDelivery } from "../../../src/message/formats/format.ts";
import { isRejected } from "../../../src/message/message.ts";
import { allFormats, corpus } from "./corpus.ts";

// How long each format is fuzzed. `npm run fuzz` sets a minute; by default the whole file takes some seconds.
const milliseconds = Number(process.env["INBOX_FUZZ_MS"] ?? 400);

const tokens = fc.constantFrom(
  "",
  "{",
  "}",
  "[",
  "]",
  '"',
  "\\",
  ",",
  ":",
  "null",
  "7",
  "1e999",
  "\\ud800",
  "\\u0000",
  "\0",
  "\ufffe",
  '"id":',
  '"id":"x",',
  "__proto__",
  "'",
  "+",
  "?",
  "UNB+",
  "UNZ+1+",
  "UNA:+.? '",
  "~",
  "*",
  "ISA*",
  "<",
  "&x;",
  "<!DOCTYPE x>",
  "<!--",
  "]]>",
  "--b1",
  "--b1--",
  "\r\n",
  "\n\n",
  "Content-Type: multipart/related; boundary=b1\r\n\r\n",
  '{"schema":{},"payload":',
  '"specversion":"1.0",',
  "%zz",
  "%00",
  "|",
);

interface Edit {
  readonly at: number;
  readonly remove: number;
  readonly insert: string;
  readonly byte: number | null;
}
const edit: fc.Arbitrary<Edit> = fc.record({
  at: fc.nat(),
  remove: fc.oneof(fc.constant(0), fc.nat(40)),
  insert: tokens,
  byte: fc.option(fc.nat(255)),
});

const apply = (body: Uint8Array, edits: readonly Edit[]): Buffer =>
  edits.reduce((bytes, { at, remove, insert, byte }) => {
    const place = at % (bytes.length + 1);
    const middle = Buffer.concat([Buffer.from(insert), byte === null ? Buffer.of() : Buffer.of(byte)]);
    return Buffer.concat([bytes.subarray(0, place), middle, bytes.subarray(place + remove)]);
  }, Buffer.from(body));

const value = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: "binary", maxLength: 20 }) },
  { weight: 3, arbitrary: fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)) },
  fc.array(fc.constantFrom("a", "b", Buffer.of(0xff), 7, null), { maxLength: 3 }),
  fc.anything(),
);
const headerName = fc.constantFrom(
  "id",
  "ID",
  "ce_id",
  "ce-id",
  "ce_source",
  "ce_specversion",
  "content-type",
  "webhook-id",
  "Nats-Msg-Id",
  "__proto__",
  "x-github-delivery",
  "eventType",
  "ce_time",
  "cloudEvents:id",
);
const headerEdits = fc.array(fc.tuple(headerName, value), { maxLength: 3 });

const broken: fc.Arbitrary<RawDelivery> = fc
  .tuple(
    fc.nat(),
    fc.array(edit, { maxLength: 4 }),
    headerEdits,
    fc.option(value),
    fc.constantFrom("bytes", "text", "null", "wild"),
    fc.boolean(),
  )
  .map(([index, edits, changes, other, form, wildRest]) => {
    const all = corpus();
    const seed = all[index % all.length]!;
    const bytes = apply(
      typeof seed.body === "string" ? Buffer.from(seed.body) : (seed.body ?? Buffer.of()),
      edits,
    );
    const headers =
      changes.length === 0
        ? seed.headers
        : Object.fromEntries([...Object.entries(seed.headers ?? {}), ...changes]);
    return {
      ...seed,
      headers: form === "wild" ? other : headers,
      body: form === "null" ? null : form === "text" ? bytes.toString("latin1") : bytes,
      ...(wildRest ? { key: other, properties: other } : {}),
    };
  });

/** Reads and checks the answer: whatever came, every item is a full and honest one. */
function check(format: Format, delivery: RawDelivery): void {
  const items = format.read(delivery);
  assert.ok(items.length > 0);
  for (const item of items) {
    if (item.kind === "ignored") {
      assert.ok(item.reason.length > 0 && item.reason.length < 200);
      continue;
    }
    const { received } = item;
    if (isRejected(received)) {
      const { code, text } = received.rejected;
      assert.match(code, /^(no-identity|invalid-identity|identity-too-long|malformed|too-large|unsafe-xml)$/);
      assert.ok(
        text.length < 600 && text.isWellFormed() && !text.includes("[object") && !text.includes("\0"),
        text,
      );
      assert.equal(received.bytes === null, delivery.body === null);
      continue;
    }
    for (const name of [received.id, received.producer]) {
      assert.ok(name !== "" && name !== "undefined" && name.isWellFormed() && !name.includes("\0"));
      assert.ok(!name.includes("[object "), name);
    }
    assert.ok(Buffer.byteLength(received.id) <= 1024);
    // U+FFFD comes out only where it was written on purpose, which the corpus and the tokens never do.
    const source = JSON.stringify([delivery.body?.toString(), delivery.headers]);
    if (received.id.includes("\ufffd")) assert.match(source, /\ufffd|\\ufffd/i);
    assert.match(received.fingerprint("j").digest, /^([0-9a-f]{64})?$/);
    assert.equal(received.text === undefined, false);
  }
  assert.deepEqual(
    items.map(outcome),
    format.read(delivery).map(outcome),
    "the same delivery, read again, gave another answer",
  );
}

const outcome = (item: ReturnType<Format["read"]>[number]): unknown =>
  item.kind === "ignored"
    ? item
    : isRejected(item.received)
      ? item.received.rejected
      : [item.received.producer, item.received.id, item.received.key];

for (const format of [...allFormats, firstOf(...allFormats)]) {
  test(`${format.name.slice(0, 30)}: broken deliveries never make it throw, hang or make up an id`, () => {
    fc.assert(
      fc.property(broken, (delivery) => check(format, delivery)),
      { numRuns: 1_000_000_000, interruptAfterTimeLimit: milliseconds, markInterruptAsFailure: false },
    );
  });
}

test("deliveries of wholly unknown kind never make any format throw", () => {
  const wild = fc.record({
    body: fc.oneof(fc.uint8Array(), fc.string({ unit: "binary" }), fc.constant(null)),
    headers: fc.anything(),
    properties: fc.anything(),
    key: fc.anything(),
    channel: fc.option(fc.string(), { nil: undefined }),
  });
  fc.assert(
    fc.property(wild, (delivery) => {
      for (const format of allFormats) check(format, delivery);
    }),
    { numRuns: 500 },
  );
});
