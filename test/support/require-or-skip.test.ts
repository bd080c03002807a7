import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { requireOrSkip } from "./require-or-skip.ts";

function contextThatRecords(): { t: TestContext; skips: string[] } {
  const skips: string[] = [];
  const t = { skip: (reason: string) => void skips.push(reason) } as unknown as TestContext;
  return { t, skips };
}

test("a missing service skips on a person's machine and fails in CI", (t) => {
  const before = process.env["CI"];
  t.after(() => {
    if (before === undefined) delete process.env["CI"];
    else process.env["CI"] = before;
  });
  const { t: inner, skips } = contextThatRecords();

  delete process.env["CI"];
  assert.equal(requireOrSkip(inner, false, "no broker"), false);
  assert.deepEqual(skips, ["no broker"]);

  process.env["CI"] = "true";
  assert.throws(() => requireOrSkip(inner, false, "no broker"), /no broker/);
  assert.equal(requireOrSkip(inner, true, "no broker"), true);
  assert.deepEqual(skips, ["no broker"]);
});
