import { drafts, finish, type Case } from "../case.ts";
import type { Consumer } from "../consumer-process.ts";
import type { Pause } from "../plan.ts";
import type { Stage } from "../stage.ts";

const keys = 7;

/** Cuts the consumers' connections at each of the pauses. */
async function cutAt(stage: Stage, consumer: Consumer, pauses: readonly Pause[]): Promise<void> {
  for (const at of pauses) {
    await consumer.paused(at);
    stage.place.line!.cutAll();
    consumer.go(at);
  }
}

export const cutInHandler: Case = {
  name: "cut-in-handler",
  title: "goes on, and applies every message once, when its connection breaks while handlers run",
  needs: { line: true },
  async play(stage) {
    await stage.publish(drafts("m", 60, keys));
    const pauses = [1, 20, 40].map((after) => ({ at: "handler" as const, after }));
    const consumer = await stage.start({ pauses, inbox: { maxBatch: 5 } });
    await cutAt(
      stage,
      consumer,
      pauses.map(({ at }) => at),
    );
    await stage.publish(drafts("after", 20, keys));
    await finish(stage);
  },
};

export const cutInAck: Case = {
  name: "cut-in-ack",
  title: "goes on, and applies every message once, when its connection breaks around an acknowledgement",
  needs: { line: true },
  async play(stage) {
    // Each pause waits for a message that is published for it: all before it may be settled at once.
    const pauses = [
      { at: "before settle", after: 1 },
      { at: "in settle", after: 21 },
      { at: "before settle", after: 41 },
    ] as const;
    const consumer = await stage.start({ pauses, inbox: { maxBatch: 5 } });
    for (const [i, { at }] of pauses.entries()) {
      await stage.publish(drafts(`m${i}-`, 20, keys));
      await cutAt(stage, consumer, [at]);
    }
    const { cutBeforeAck, cutAfterAck } = stage.place.line!;
    for (const [i, cut] of [cutBeforeAck, cutAfterAck].entries()) {
      cut?.();
      await stage.publish(drafts(`cut${i}-`, 20, keys));
      await stage.settled();
    }
    await finish(stage);
  },
};
