import assert from "node:assert/strict";
import { test } from "node:test";
import { message, recordEffect, testInbox } from "./support.ts";

test("applies a message once when it comes twice in a row", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const first = await inbox.process(message("m1"), recordEffect);
  const second = await inbox.process(message("m1"), recordEffect);
  assert.equal(first.outcome, "applied");
  assert.equal(first.settle, "ack");
  assert.equal(second.outcome, "duplicate");
  assert.equal(second.settle, "ack");
  assert.deepEqual(await effects(), { m1: 1 });
});
