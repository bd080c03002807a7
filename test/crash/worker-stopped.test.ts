import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Point } from "./plan.ts";
import { crashTest } from "./support.ts";
import { accept, bodiesOf, effectsByKey, inOrder, nothingPending, worker } from "./workers.ts";

describe("a worker that is stopped for longer than its lease, and wakes", { concurrency: 2 }, () => {
  for (const [at, when] of [
    ["taken", "before its transaction"],
    ["claimed", "inside its transaction, before the handler"],
    ["handled", "inside its transaction, before commit"],
  ] as const satisfies readonly (readonly [Point, string])[]) {
    test(`${when}: nothing is lost, doubled or out of order`, async (t) => {
      const test = await crashTest(t);
      const bodies = bodiesOf(40, 5);
      await accept(test, bodies);
      const zombie = test.start(worker({ die: { at, by: "SIGSTOP" }, inbox: { lanes: 2 } }));
      await test.until("exists (select from pending_lane where leased_until < clock_timestamp())");
      const other = test.start(worker());
      if (at === "taken") await test.until(nothingPending);
      // The lanes are the other one's now, though a transaction of the stopped one may still hold some of their rows.
      else {
        await test.until(
          `not exists (select from pending join pending_lane using (consumer, lane)
                        where leased_until < clock_timestamp() - interval '1 second')`,
        );
      }
      process.kill(zombie.child.pid!, "SIGCONT");
      await test.until(nothingPending);
      assert.deepEqual(await effectsByKey(test, bodies), inOrder(bodies));
      assert.equal(await test.balance(), (40 * 41) / 2);
      assert.deepEqual(await test.attempts(), {});
      assert.deepEqual(await test.quarantined(), []);
      assert.equal(zombie.child.exitCode, null, "it lives");
      assert.equal(other.child.exitCode, null);
    });
  }
});
