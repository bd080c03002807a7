import assert from "node:assert/strict";
import { drafts, finish, type Case } from "../case.ts";

const maxInHand = 30;

export const gracefulStop: Case = {
  name: "graceful-stop",
  title: "a stop under load loses nothing, and nothing that was settled is delivered again",
  async play(stage) {
    await stage.publish(drafts("m", 200, 16));
    const plan = { handlerMs: 10, run: { maxInHand }, inbox: { maxBatch: 5 } };
    const settled = new Set<string | undefined>();
    for (const form of ["tx", "batch"] as const) {
      const consumer = await stage.start({ ...plan, form });
      await consumer.acks(20);
      const before = consumer.delivered.length;
      await consumer.stop();
      assert.ok(consumer.acked.length < 200 - settled.size, `it was stopped under load: ${before} delivered`);
      assertNotRepeated(consumer.delivered);
      for (const id of consumer.acked) settled.add(id);
    }
    const last = await stage.start(plan);
    await finish(stage, { inOrder: stage.subject.order !== "never" });
    assertNotRepeated(last.delivered);

    function assertNotRepeated(delivered: readonly (string | undefined)[]): void {
      const repeated = delivered.filter((id) => settled.has(id));
      // Where one number says what is settled, nothing above the first that is not can be told to be.
      if (stage.subject.cumulative === true) assert.ok(repeated.length <= maxInHand, repeated.join(", "));
      else assert.deepEqual(repeated, [], "settled before, and delivered again");
    }
  },
};
