import assert from "node:assert/strict";
import { drafts, finish, type Case } from "../case.ts";

const maxInHand = 40;

export const storeAway: Case = {
  name: "store-away",
  title: "intake rests while the database is away, no attempt is used up, and all is done when it is back",
  needs: { ownServer: true },
  async play(stage) {
    const server = stage.server!;
    await stage.publish(drafts("m", 200, 7));
    const consumer = await stage.start({ handlerMs: 5, run: { maxInHand }, inbox: { maxBatch: 5 } });
    await consumer.acks(30);
    await server.kill();
    await consumer.storeIs("away");
    const { acked, delivered } = consumer;
    const ackedBefore = acked.length;
    const away = await consumer.healthIs("store-away");
    // As long as a handler's error would have been tried again a few times.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await consumer.healthIs("store-away");
    // What was committed before may be acknowledged late, and a source may have read ahead as much again.
    const late = acked.length - ackedBefore;
    assert.ok(late <= maxInHand, `${late} were acknowledged while the database was away`);
    const unsettled = delivered.length - acked.length;
    assert.ok(unsettled <= 2 * maxInHand, `${unsettled} were taken in while the database was away`);
    assert.ok(away.inHand > 0, "it keeps what it has in hand");

    await server.restart();
    await consumer.storeIs("back");
    const after = drafts("after", 20, 7);
    await stage.publish(after);
    await stage.settled();
    await consumer.healthIs("ok");
    const { rows } = await stage.pool.query<{ n: number }>("select count(*)::int as n from attempt");
    assert.equal(rows[0]!.n, 0, "attempts were used up");
    assert.deepEqual(consumer.store, ["away", "back"], "told once a change");
    await finish(stage, { inOrder: stage.subject.order !== "never" });
  },
};
