import assert from "node:assert/strict";
import { test } from "node:test";
import { createEnding } from "../../src/inbox/ending.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { tellWarning } from "../../src/telemetry/tell-warning.ts";

test("an end with an error that nobody awaits is told as a warning of the process", async (t) => {
  const told = new Promise<Error>((resolve) => {
    const hear = (warning: Error): void => {
      if (warning.name === "InboxWarning") resolve(warning);
    };
    process.on("warning", hear);
    t.after(() => process.off("warning", hear));
  });
  createEnding("The run of x", Promise.reject(new Error("no such queue")));
  assert.equal(
    (await told).message,
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
