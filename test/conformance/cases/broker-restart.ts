import { drafts, finish, type Case } from "../case.ts";

export const brokerRestart: Case = {
  name: "broker-restart",
  title: "goes on, and applies every message once, when the broker is restarted under load",
  needs: { restart: true },
  async play(stage) {
    await stage.publish(drafts("m", 120, 7));
    const plan = { handlerMs: 10, run: { maxInHand: 20 }, inbox: { maxBatch: 5 } };
    const a = await stage.start(plan);
    const b = await stage.start({ ...plan, form: "statements" });
    await Promise.race([a.acks(5), b.acks(5)]);
    await stage.place.restart!();
    await stage.publish(drafts("after", 40, 7));
    await finish(stage);
  },
};
