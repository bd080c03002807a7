import { drafts, feedUntil, finish, type Case } from "../case.ts";

const keys = 24;
const mostWaiting = 10 * keys;
const plan = { handlerMs: 20, run: { maxInHand: 10 }, inbox: { maxBatch: 2 } };

export const joinsAndLeaves: Case = {
  name: "joins-and-leaves",
  title:
    "applies every message once while two and three consumers join, die and stop in the middle of their work",
  async play(stage) {
    let round = 0;
    // On a slow machine a join takes long: what waits stays no more than is done in time once nobody joins any more.
    const more = async (): Promise<void> => {
      if ((await stage.place.unsettled()) < mostWaiting)
        await stage.publish(drafts(`${round++}-`, keys, keys));
    };
    const a = await stage.start(plan);
    await feedUntil(a.receives(1), more);
    const b = await stage.start({ ...plan, form: "statements" });
    await feedUntil(b.receives(1), more);
    const c = await stage.start({ ...plan, form: "batch" });
    await feedUntil(c.receives(1), more);
    await b.kill();
    const d = await stage.start(plan);
    await feedUntil(d.receives(1), more);
    await a.stop();
    await more();
    await c.kill();
    await finish(stage, { inOrder: stage.subject.order === "always" });
  },
};
