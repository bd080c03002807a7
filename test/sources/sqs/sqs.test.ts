import assert from "node:assert/strict";
import test from "node:test";
import { formats } from "../../../src/index.ts";
import { sqs } from "../../../src/sources/sqs/sqs.ts";
import { recordEffect, testInbox } from "../../inbox/support.ts";
import { body, testQueue } from "./support.ts";

const identity = formats.sqs({ idPath: "/id" });

test("messages are applied once and deleted, duplicates too", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const { inbox, effects } = await testInbox(t);
  const ids = Array.from({ length: 100 }, (_, i) => `m${i}`);
  await queue.send([...ids, ...ids].map((id) => body(id)));
  const run = inbox.run(sqs({ ...queue, identity }), recordEffect);
  await queue.empty();
  const { outcomes } = await run.stop();
  assert.deepEqual([outcomes.applied, outcomes.duplicate], [100, 100]);
  assert.deepEqual(await effects(), Object.fromEntries(ids.map((id) => [id, 1])));
});
