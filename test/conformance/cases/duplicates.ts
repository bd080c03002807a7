import assert from "node:assert/strict";
import { drafts, finish, type Case } from "../case.ts";

export const duplicates: Case = {
  name: "duplicates",
  title: "messages that were published twice are applied once, and their copies are acknowledged",
  async play(stage) {
    const messages = drafts("m", 100, 7);
    const ids = messages.map(({ id }) => id!);
    await stage.publish(messages);
    await stage.publishAgain(ids);
    const first = await stage.start({ form: "statements" });
    await stage.settled();
    // Known to the table only: the process that has applied them is gone.
    await first.stop();
    await stage.publishAgain(ids.slice(0, 30));
    const second = await stage.start();
    await finish(stage);
    assert.ok(first.delivered.length >= 200, `${first.delivered.length} of 200 publications came`);
    assert.ok(second.delivered.length >= 30, `${second.delivered.length} of 30 publications came`);
  },
};
