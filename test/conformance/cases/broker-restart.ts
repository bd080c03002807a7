import { drafts, feedUntil, finish, type Case } from "../case.ts";

export const brokerRestart: Case = {
  name: "broker-restart",
  title: "goes on, and applies every message once, when the broker is restarted under load",
  needs: { restart: true },
  async play(stage) {
    let round = 0;
    const more = (): Promise<void> => stage.publish(drafts(`${round++}-`, 48, 24));
    const plan = { handlerMs: 10, run: { maxInHand: 20 }, inbox: { maxBatch: 5 } };
    const a = await stage.start(plan);
    const b = await stage.start({ ...plan, form: "statements" });
    await feedUntil(
      Promise.all([a.acks(1), b.acks(1)]).then(() => undefined),
      more,
    );
    await more();
    await stage.place.restart!();
    await stage.publish(drafts("after", 40, 7));
    await finish(stage);
  },
};
