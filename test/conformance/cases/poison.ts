import assert from "node:assert/strict";
import { drafts, finish, type Case } from "../case.ts";

const count = 1_000;

export const poison: Case = {
  name: "poison",
  title: "a message that always fails goes to quarantine alone: 1,000 around it are applied once",
  async play(stage) {
    const good = drafts("m", count, 20);
    const bad = { id: "poison", key: "poison", fails: "always" } as const;
    await stage.publish([...good.slice(0, count / 2), bad, ...good.slice(count / 2)]);
    await stage.start({ form: "statements", inbox: { maxBatch: 100 } });
    const { applied } = await finish(stage, {
      quarantined: { "attempts-exhausted": ["poison"] },
      inOrder: stage.subject.order !== "never",
    });
    assert.equal(applied, count);
  },
};
