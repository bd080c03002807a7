import { drafts, finish, type Case } from "../case.ts";

const count = 5;

export const noIdentity: Case = {
  name: "no-identity",
  title: "a message without an id is kept in quarantine and settled, and holds nobody up",
  async play(stage) {
    const nameless = drafts("", count, count).map((draft) => ({ ...draft, id: null }));
    await stage.publish(drafts("before", 5, count));
    await stage.publish(nameless);
    await stage.publish(drafts("after", 5, count));
    await stage.start();
    await finish(stage, { quarantined: { "no-identity": nameless.map(() => "no id") } });
  },
};
