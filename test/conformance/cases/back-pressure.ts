import assert from "node:assert/strict";
import { drafts, finish, type Case } from "../case.ts";

const maxInHand = 20;
const maxInHandBytes = 200_000;
const pad = "x".repeat(20_000);

export const backPressure: Case = {
  name: "back-pressure",
  title: "what is in hand stays bounded, in messages and in bytes, while handlers are slower than the broker",
  async play(stage) {
    const plan = { handlerMs: 10, inbox: { maxBatch: 5 } };
    await stage.publish(drafts("many", 120, 7));
    const few = await stage.start({ ...plan, run: { maxInHand } });
    await stage.settled();
    await few.stop();
    // A source may hand over as many at once as the run takes in hand, when it has room for one.
    const { mostInHand } = few.report!;
    assert.ok(mostInHand < 2 * maxInHand, `${mostInHand} in hand, and ${maxInHand} were to be`);

    await stage.publish(drafts("large", 100, 7, { pad }));
    const small = await stage.start({ ...plan, run: { maxInHandBytes } });
    await finish(stage);
    // It may not know how large they are before the first have come.
    const { mostBytesInHand } = small.report!;
    const most = 5 * maxInHandBytes;
    assert.ok(mostBytesInHand < most, `${mostBytesInHand} bytes in hand, and ${maxInHandBytes} were to be`);
  },
};
