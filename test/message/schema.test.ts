import assert from "node:assert/strict";
import { test } from "node:test";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";
import { createMessage } from "../../src/message/create-message.ts";
import type { Message } from "../../src/message/message.ts";
import { validateData } from "../../src/message/schema.ts";

const message = (payload: string | Uint8Array | null): Message =>
  createMessage({ producer: "p", id: "1", payload });
const payment = z.object({ account: z.string(), delta: z.number().int() });

test("a payload that fits is read by the schema, at once", () => {
  const result = validateData(payment, message('{"account":"a","delta":1,"more":true}'));
  assert.deepEqual(result, { ok: true, data: { account: "a", delta: 1 } });
});

test("a schema that must wait gives a promise of the same", async () => {
  const known = payment.refine(async ({ account }) => account === "a", { message: "unknown account" });
  assert.deepEqual(await validateData(known, message('{"account":"a","delta":1}')), {
    ok: true,
    data: { account: "a", delta: 1 },
  });
  const refused = await validateData(known, message('{"account":"b","delta":1}'));
  assert.ok(!refused.ok);
  assert.equal(refused.error.code, "invalid-payload");
  assert.deepEqual(refused.issues, ["unknown account"]);
});

test("a payload that does not fit gives the places and reasons", () => {
  const result = validateData(
    z.object({ lines: z.array(payment) }),
    message('{"lines":[{"account":1,"delta":0.5}]}'),
  );
  assert.ok(!("then" in result) && !result.ok);
  assert.equal(result.error.code, "invalid-payload");
  assert.equal(result.issues.length, 2);
  assert.match(result.issues[0]!, /^lines\.0\.account: /);
  assert.match(result.error.message, /message "1" of "p".*lines\.0\.delta/);
});

test("the list of issues is bounded in number and length, and safe to print", () => {
  const list = message(JSON.stringify(Array.from({ length: 10_000 }, () => "x")));
  const many = validateData(z.array(z.number()), list);
  assert.ok(!("then" in many) && !many.ok);
  assert.equal(many.issues.length, 11);
  assert.equal(many.issues[10], "and 9990 more");
  const hostile = validateData(
    z.strictObject({}),
    message(JSON.stringify({ ["\u001b[2J\u202e".repeat(1000)]: 1 })),
  );
  assert.ok(!("then" in hostile) && !hostile.ok);
  assert.ok(hostile.error.message.length < 3000);
  assert.doesNotMatch(hostile.error.message, /[\u0000-\u001f\u202e]/);
});

test("a tombstone is validated as null", () => {
  assert.deepEqual(validateData(payment.nullable(), message(null)), { ok: true, data: null });
  const result = validateData(payment, message(null));
  assert.ok(!("then" in result) && !result.ok);
});

test("a payload that is no JSON is malformed, whatever the schema", () => {
  for (const payload of ["{", Uint8Array.of(0xff)]) {
    const result = validateData(z.any(), message(payload));
    assert.ok(!("then" in result) && !result.ok);
    assert.equal(result.error.code, "malformed");
  }
});

test("what the schema throws is the program's fault and is thrown on", async () => {
  const throwing = (validate: () => never): StandardSchemaV1 => ({
    "~standard": { version: 1, vendor: "test", validate },
  });
  const bug = new TypeError("a bug");
  assert.throws(
    () =>
      validateData(
        throwing(() => {
          throw bug;
        }),
        message("1"),
      ),
    bug,
  );
  const rejecting: StandardSchemaV1 = {
    "~standard": { version: 1, vendor: "test", validate: () => Promise.reject(bug) },
  };
  await assert.rejects(async () => validateData(rejecting, message("1")), bug);
});
