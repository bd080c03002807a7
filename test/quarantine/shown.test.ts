import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createRedaction } from "../../src/quarantine/redact.ts";
import { showEntry } from "../../src/quarantine/show-entry.ts";
import { showPayload } from "../../src/quarantine/shown-body.ts";
import type { QuarantineEntry } from "../../src/store/quarantine-entry.ts";

const secret = "S3CRET";
const redaction = createRedaction({ redact: ["/secret", "/*/secret"], redactHeaders: ["x-token"] });

test("where parts are to be hidden, what is no JSON is hidden whole; without, bytes stay bytes", () => {
  const open = createRedaction({});
  const bytes = Buffer.of(0xff, 0);
  assert.deepEqual(showPayload(open, null), { kind: "none" });
  assert.deepEqual(showPayload(open, Buffer.from("text")), { kind: "text", text: "text", bytes: 4 });
  assert.deepEqual(showPayload(open, bytes), { kind: "bytes", base64: "/wA=", bytes: 2 });
  assert.deepEqual(showPayload(redaction, null), { kind: "none" });
  for (const payload of [bytes, Buffer.from("text"), Buffer.from('{"a":1,"a":2}')]) {
    assert.deepEqual(showPayload(redaction, payload), { kind: "hidden", bytes: payload.length });
  }
});

const entryOf = (payload: Uint8Array, repaired: Uint8Array): QuarantineEntry => ({
  ...{ id: "1", status: "repaired", consumer: "c", tenant: "", producer: "p", messageId: "m" },
  ...{ key: undefined, type: undefined, code: "handler-rejected", error: "e", group: "g", attempts: 1 },
  ...{ deliveries: 1, payloadBytes: payload.length, firstFailedAt: new Date(0), lastFailedAt: new Date(0) },
  ...{
    handlerVersion: "1",
    againOf: undefined,
    decision: undefined,
    rawIdentity: undefined,
    time: undefined,
  },
  ...{ headers: { "X-Token": secret, authorization: secret }, payload, keyId: undefined },
  ...{ fingerprint: "", fingerprintMode: "b" },
  repair: {
    ...{ tenant: "", producer: "p", messageId: "m", payload: repaired, fingerprint: "", keyId: undefined },
  },
});

test("no view of an entry shows a hidden part: not the body, not the repair, not the diff", () => {
  const member = fc.json().map((json) => json.replaceAll(secret, "x"));
  const body = fc
    .record({ before: member, inside: member, after: member, list: fc.boolean() })
    .map(({ before, inside, after, list }) => {
      const one = `{"a":${before},"secret":{"deep":[${inside},"${secret}"]},"z":${after}}`;
      return Buffer.from(list ? `[${before},${one}]` : one);
    });
  let shownOnes = 0;
  fc.assert(
    fc.property(body, body, (payload, repaired) => {
      const shown = showEntry(redaction, entryOf(payload, repaired));
      assert.doesNotMatch(JSON.stringify(shown), /S3CRET/);
      if (shown.payload.kind === "text") shownOnes++;
    }),
    { numRuns: 300 },
  );
  assert.ok(shownOnes > 100, `${shownOnes} shown`);
});

test("a diff of hidden parts says so: a change in one is not taken for none", () => {
  const shown = showEntry(redaction, entryOf(Buffer.from('{"secret":1}'), Buffer.from('{"secret":2}')));
  assert.match(shown.repair?.diff ?? "", /Hidden parts are not compared/);
  const whole = showEntry(redaction, entryOf(Buffer.from("one"), Buffer.from('{"secret":2}')));
  assert.equal(whole.repair?.diff, "The payloads are hidden.");
});
