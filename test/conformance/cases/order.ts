import { drafts, feedUntil, finish, type Case } from "../case.ts";

const keys = 8;

export const order: Case = {
  name: "order",
  title:
    "messages of a key are applied in the order of sending, through failures, deaths and changes of consumers",
  async play(stage) {
    const alone = stage.subject.order === "one consumer";
    const plan = { handlerMs: 3, run: { maxInHand: 40 }, inbox: { maxBatch: 5, maxAttempts: 50 } };
    await stage.publish(drafts("a", 10 * keys, keys));
    await stage.publish(drafts("twice", keys, keys, { fails: "twice" }));
    await stage.publish(drafts("b", 10 * keys, keys));
    const first = await stage.start({ ...plan, die: { at: "handler", after: 30 } });
    await first.receives(1);
    if (!alone) await stage.start(plan);
    await first.killed();
    const second = await stage.start({ ...plan, form: "statements" });
    // Others may have handled everything before this one has joined.
    let round = 0;
    await feedUntil(second.receives(10), () => stage.publish(drafts(`c${round++}-`, keys, keys)));
    await second.stop();
    await stage.start(plan);
    await finish(stage, { inOrder: true });
  },
};
