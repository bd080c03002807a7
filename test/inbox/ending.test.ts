import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { createEnding } from "../../src/inbox/ending.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { tellWarning } from "../../src/telemetry/tell-warning.ts";

test("an end with an error that nobody awaits is told as a warning of the process", async () => {
  const told = once(process, "warning");
  createEnding("The run of x", Promise.reject(new Error("no such queue")));
  const [warning] = (await told) as [Error];
  assert.equal(warning.name, "InboxWarning");
  assert.equal(
    warning.message,
    'The run of x has ended, and nobody awaits its "finished": Error: no such queue',
  );
});

test("an end that somebody awaits is that one's to hear, and no warning", async (t) => {
  const heard: unknown[] = [];
  const hear = (event: unknown): void => void heard.push(event);
  telemetry.warning.subscribe(hear);
  t.after(() => telemetry.warning.unsubscribe(hear));
  await assert.rejects(createEnding("x", Promise.reject(new Error("gone"))).ask(), /gone/);
  await new Promise(setImmediate);
  assert.deepEqual(heard, []);
  // Whoever listens to the channel gets what is told, in place of the process.
  tellWarning("one");
  assert.deepEqual(heard, [{ message: "one" }]);
});
