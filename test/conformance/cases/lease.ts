import assert from "node:assert/strict";
import { drafts, finish, type Case } from "../case.ts";

export const lease: Case = {
  name: "lease",
  title: "a handler that takes longer than the lease is applied once, and so is what waits behind it",
  needs: { shortLease: true },
  async play(stage) {
    const { leaseMs } = stage.place;
    assert.ok(leaseMs !== undefined, "a place with a short lease says how long it is");
    await stage.publish([{ id: "slow", key: "k0", takesMs: leaseMs * 2.5 }, ...drafts("m", 8, 4)]);
    const run = { extendEveryMs: Math.max(10, Math.floor(leaseMs / 4)) };
    // One lane: the others wait in the buffer for as long.
    const a = await stage.start({ run, inbox: { lanes: 1, maxBatch: 1 } });
    await a.receives(1);
    const b = await stage.start({ run });
    await stage.publish(drafts("later", 8, 4));
    // Where deliveries in hand are extended nobody else may get them. Otherwise they may come late for their broker.
    await stage.settled();
    await b.stop();
    await a.stop();
    const extending = a.report!.extends;
    await finish(stage, { mayRefuse: !extending });
    if (!extending) return;
    const ids = [...a.delivered, ...b.delivered];
    assert.deepEqual(
      ids.filter((id, i) => ids.indexOf(id) !== i),
      [],
      "handed over twice",
    );
  },
};
