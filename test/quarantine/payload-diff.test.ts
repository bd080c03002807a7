import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyPatch } from "diff";
import { payloadDiff } from "../../src/quarantine/payload-diff.ts";
import { cpuTimeMs } from "../support/cpu-time.ts";

const bytes = (text: string): Buffer => Buffer.from(text);

test("the diff of two JSON payloads shows the values that changed, to the last digit", () => {
  const diff = payloadDiff(
    bytes('{"total":12345678901234567890,"account":"a","lines":[1,2]}'),
    bytes('{"account":"b","total":12345678901234567891,"lines":[1,2]}'),
  );
  assert.match(diff, /^-  "account": "a",$/m);
  assert.match(diff, /^\+  "account": "b",$/m);
  assert.match(diff, /^-  "total": 12345678901234567890$/m);
  assert.match(diff, /^\+  "total": 12345678901234567891$/m);
  assert.doesNotMatch(diff, /^[-+].*lines/m);
});

test("a payload that is only written otherwise is said to be the same", () => {
  assert.match(payloadDiff(bytes('{"a":1,"b":{}}'), bytes(' {"b":{ }, "a":1}')), /the same/);
});

test("texts are compared line by line, bytes and tombstones by their size", () => {
  assert.match(payloadDiff(bytes("UNA\nBGM"), bytes("UNA\nBGX")), /^-BGM\n\+BGX$/m);
  assert.match(payloadDiff(Buffer.of(255, 0), bytes("x")), /2 bytes became 1 bytes/);
  assert.match(payloadDiff(null, bytes("x")), /^\+x$/m);
});

test("the diff leads from the one to the other, for any JSON", () => {
  const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
  fc.assert(
    fc.property(fc.array(fc.integer()), fc.array(fc.integer()), (a, b) => {
      const diff = payloadDiff(bytes(JSON.stringify(a)), bytes(JSON.stringify(b)));
      if (JSON.stringify(a) === JSON.stringify(b)) assert.match(diff, /the same/);
      else assert.equal(applyPatch(pretty(a), diff), pretty(b));
    }),
  );
});

test("two large payloads that have nothing in common end in time", () => {
  const list = (from: number): Buffer =>
    bytes(JSON.stringify(Array.from({ length: 50_000 }, (_, i) => i * 2 + from)));
  const [before, after] = [list(0), list(1)];
  const ms = cpuTimeMs(() => assert.match(payloadDiff(before, after), /differ too much/));
  assert.ok(ms < 10_000, `${ms} ms`);
});
