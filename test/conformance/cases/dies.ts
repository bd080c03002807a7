import { forms, type Point } from "../../crash/plan.ts";
import { drafts, finish, type Case } from "../case.ts";

const points: readonly Point[] = ["handler", "handled", "commit sent", "committed", "outcome", "settled"];

export const dies: Case = {
  name: "dies",
  title:
    "applies every message once when consumers die in a handler, before and at commit, between commit and ack, and after the ack",
  async play(stage) {
    await stage.publish(drafts("first", 30, 7));
    for (const [i, at] of points.entries()) {
      await stage.publish(drafts(`${i}-`, 15, 7));
      const consumer = await stage.start({
        form: forms[i % forms.length]!,
        die: { at, after: 3 },
        inbox: { lanes: 2, maxBatch: 5 },
      });
      await consumer.killed();
    }
    await stage.start();
    await finish(stage, { inOrder: stage.subject.order !== "never" });
  },
};
