import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { errorShape } from "../../src/store/error-shape.ts";
import { cpuTimeMs } from "../support/cpu-time.ts";

const shapeOf = (error: string): string => errorShape("handler-failed", error).shape;

test("what differs from message to message is masked, what tells the cause is kept", () => {
  const table: readonly (readonly [string, string])[] = [
    ["no account 4711", "no account <n>"],
    ["Error: can't find order 'A-17' for buyer 'x y'", "Error: can't find order '…' for buyer '…'"],
    ['column "total" is 12.50, not -3', 'column "…" is <n>, not <n>'],
    ["payment 6fa459ea-ee8a-3ca4-894e-db77e160355e refused", "payment <uuid> refused"],
    ["charge ch_3MtwBwLkdIwHu7ix28a3tqPa is gone", "charge <id> is gone"],
    ["Key (email)=(a@b.example) already exists", "Key (email)=(…) already exists"],
    ["mail to jane.doe@shop.example bounced", "mail to <address> bounced"],
    ["ids 1, 2, 3 are unknown", "ids <n>, … are unknown"],
    ["connect ECONNREFUSED 10.0.0.7:5432", "connect ECONNREFUSED <n>"],
    ["took 0x1F\n   too long", "took <n> too long"],
  ];
  for (const [error, shape] of table) assert.equal(shapeOf(error), shape);
});

test("one cause is one group, whatever ids and numbers stand in it", () => {
  const value = fc.oneof(
    fc.integer().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 }).map((n) => n.toFixed(3)),
  );
  const quoted = fc.string().map((text) => text.replace(/["\n\r\u2028\u2029]/g, ""));
  fc.assert(
    fc.property(value, value, fc.uuid(), fc.uuid(), quoted, quoted, (a, b, u, v, s, t) => {
      const text = (n: string, id: string, q: string): string => `order ${n} of ${id}: no item "${q}" here`;
      assert.deepEqual(errorShape("c", text(a, u, s)), errorShape("c", text(b, v, t)));
    }),
  );
});

test("another code or another cause is another group", () => {
  assert.notEqual(errorShape("a", "x").group, errorShape("b", "x").group);
  assert.notEqual(errorShape("a", "no account 1").group, errorShape("a", "no order 1").group);
});

test("any text has a shape that is short, well-formed, free of digits, and its own shape", () => {
  const anyText = fc.oneof(fc.string({ unit: "binary", maxLength: 2_000 }), fc.string({ maxLength: 2_000 }));
  fc.assert(
    fc.property(anyText, (text) => {
      const { shape, group } = errorShape("c", `${text}\ud800`);
      assert.ok(shape.length <= 300 && shape.isWellFormed());
      assert.match(group, /^[0-9a-f]{16}$/);
      assert.doesNotMatch(shape, /\d/);
    }),
    { numRuns: 500 },
  );
});

test("hostile texts take no time", () => {
  for (const part of ["'", '"', "`", "a@", "a.", "=(", "1,", "a1", "-", "<n>,", "0x"]) {
    const text = part.repeat(50_000);
    const ms = cpuTimeMs(() => {
      for (let i = 0; i < 50; i++) shapeOf(text);
    });
    assert.ok(ms < 2_000, `${part}: ${ms} ms`);
  }
});
