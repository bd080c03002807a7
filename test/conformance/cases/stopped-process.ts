import { drafts, finish, type Case } from "../case.ts";

export const stoppedProcess: Case = {
  name: "stopped-process",
  title:
    "a process that stands still until others have its messages, and then goes on, applies nothing twice",
  needs: { shortLease: true },
  async play(stage) {
    // With places for names others get nothing of a log while a transaction holds it: all messages are of one log, so that what
    // they get shows that the server has ended the transaction of the one that stands still.
    const held = stage.subject.namesByPlace === true;
    await stage.publish(drafts("m", 36, held ? 1 : 6));
    const a = await stage.start({
      pauses: [{ at: "handler", after: 3 }],
      inbox: { lanes: 2, maxBatch: 4 },
      ...(held ? { settings: { idle_in_transaction_session_timeout: "3s" } } : {}),
    });
    // In the middle of a transaction, with claims and effects in it.
    await a.paused("handler");
    a.freeze();
    const b = await stage.start();
    await b.receivesOneOf(a.delivered);
    a.thaw();
    a.go("handler");
    await finish(stage, { mayRefuse: true, inOrder: stage.subject.order === "always" });
  },
};
