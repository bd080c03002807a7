import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createGate } from "../../src/inbox/gate.ts";

test("what is alone is beside nothing, everything runs, and what fails lets the next in", async () => {
  const tasks = fc.array(fc.record({ alone: fc.boolean(), turns: fc.nat(4), fails: fc.boolean() }), {
    maxLength: 20,
  });
  await fc.assert(
    fc.asyncProperty(tasks, async (list) => {
      const gate = createGate();
      let together = 0;
      let alone = 0;
      let ran = 0;
      await Promise.allSettled(
        list.map((task) =>
          gate[task.alone ? "alone" : "together"](async () => {
            if (task.alone) alone++;
            else together++;
            for (let turn = 0; turn <= task.turns; turn++) {
              assert.ok(alone <= 1 && (alone === 0 || together === 0), "alone is alone");
              await Promise.resolve();
            }
            if (task.alone) alone--;
            else together--;
            ran++;
            if (task.fails) throw new Error("the work fails");
          }),
        ),
      );
      assert.equal(ran, list.length);
    }),
  );
});

test("work that is not alone runs side by side", async () => {
  const gate = createGate();
  let release: () => void = () => undefined;
  const both = new Promise<void>((resolve) => (release = resolve));
  let begun = 0;
  const work = async (): Promise<void> => {
    if (++begun === 2) release();
    await both;
  };
  await Promise.all([gate.together(work), gate.together(work)]);
});
