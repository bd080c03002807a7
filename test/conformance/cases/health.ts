import assert from "node:assert/strict";
import { drafts, finish, type Case } from "../case.ts";

const stalledAfterMs = 300;

export const health: Case = {
  name: "health",
  title:
    "health tells no progress from nothing to do: ok when idle, stalled while a handler holds everything up, ok after",
  async play(stage) {
    const consumer = await stage.start({
      run: { stalledAfterMs },
      pauses: [{ at: "handler", after: 3 }],
      inbox: { lanes: 1, maxBatch: 1 },
    });
    await stage.publish(drafts("first", 2, 2));
    await stage.settled();
    // Long enough for a consumer that had something to do to count as stalled.
    await new Promise((resolve) => setTimeout(resolve, 2 * stalledAfterMs));
    const idle = await consumer.healthIs("ok");
    assert.ok(idle.idleMs >= stalledAfterMs, `idle for ${idle.idleMs} ms`);
    assert.equal(idle.inHand, 0);

    await stage.publish(drafts("second", 10, 5));
    await consumer.paused("handler");
    const stalled = await consumer.healthIs("stalled");
    assert.ok(stalled.inHand > 0 && stalled.idleMs >= stalledAfterMs, JSON.stringify(stalled));
    consumer.go("handler");
    await stage.settled();
    await consumer.healthIs("ok");
    await finish(stage, { inOrder: stage.subject.order !== "never" });
  },
};
