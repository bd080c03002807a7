import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { formats } from "../../../src/index.ts";
import { createGroupOrder, type Grouped } from "../../../src/sources/sqs/group-order.ts";
import { sqs } from "../../../src/sources/sqs/sqs.ts";
import { idOf, inHand } from "./hand.ts";
import { body, testQueue } from "./support.ts";

const identity = formats.sqs({ idPath: "/id" });

test("a group comes one message at a time; behind one that is to come again nothing is begun, and the order is kept", async (t) => {
  const queue = await testQueue(t, { fifo: true, visibilitySeconds: 30 });
  if (queue === undefined) return;
  const sent = ["g1", "g2", "g3", "g4", "g5"];
  await queue.send([
    ...sent.map((id) => ({ body: body(id), group: "g" })),
    { body: body("h1"), group: "h" },
    { body: body("h2"), group: "h" },
  ]);
  const hand = await inHand(t, sqs({ ...queue, identity }));
  const heads = await hand.take(2);
  assert.deepEqual(heads.map(idOf).sort(), ["g1", "h1"]);
  assert.deepEqual(heads.map(({ received }) => received.key).sort(), ["g", "h"]);
  await hand.ack(heads.find((delivery) => idOf(delivery) === "g1")!);
  const second = await hand.next();
  assert.equal(idOf(second), "g2");
  await hand.retry(second, 1_500);
  // The other group goes on meanwhile.
  await hand.ack(heads.find((delivery) => idOf(delivery) === "h1")!);
  const h2 = await hand.next();
  assert.equal(idOf(h2), "h2");
  await hand.ack(h2);
  const order: string[] = [];
  for (let i = 0; i < 4; i++) {
    const delivery = await hand.next();
    order.push(idOf(delivery));
    assert.deepEqual(hand.waiting, [], "one at a time");
    await hand.ack(delivery);
  }
  assert.deepEqual(order, ["g2", "g3", "g4", "g5"]);
  await queue.empty();
});

test("a stop gives a group back in its order, also to another consumer", async (t) => {
  const queue = await testQueue(t, { fifo: true, visibilitySeconds: 60 });
  if (queue === undefined) return;
  const sent = Array.from({ length: 12 }, (_, i) => `g${i}`);
  await queue.send(sent.map((id) => ({ body: body(id), group: "g" })));
  const first = await inHand(t, sqs({ ...queue, identity }));
  const head = await first.next();
  await first.stop();
  await first.release(head);
  await first.source.close();
  assert.equal((await queue.counts()).inFlight, 0);
  const second = await inHand(t, sqs({ ...queue, identity }));
  const order: string[] = [];
  while (order.length < sent.length) {
    const delivery = await second.next();
    order.push(idOf(delivery));
    await second.ack(delivery);
  }
  assert.deepEqual(order, sent);
});

interface Entry extends Grouped {
  readonly number: number;
}

test("whatever succeeds and fails in whatever order: one of a group at a time, done in order, nothing done behind one that is not", () => {
  const step = fc.record({ group: fc.constantFrom("a", "b", undefined), done: fc.boolean(), pick: fc.nat() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const order = createGroupOrder<Entry>();
      const begun: Entry[] = [];
      const entered: Entry[] = [];
      const ended = new Map<number, "done" | "back">();
      for (const { group, done, pick } of steps) {
        const entry = { group, number: entered.length };
        entered.push(entry);
        if (order.enter(entry)) begun.push(entry);
        if (pick % 3 === 0 || begun.length === 0) continue;
        const [ending] = begun.splice(pick % begun.length, 1);
        if (done) {
          ended.set(ending!.number, "done");
          const next = order.done(ending!);
          if (next !== undefined) begun.push(next);
        } else {
          const behind = order.undone(ending!);
          for (const one of [ending!, ...behind]) ended.set(one.number, "back");
          assert.deepEqual(
            behind.map(({ number }) => number),
            behind.map(({ number }) => number).sort((a, b) => a - b),
          );
        }
        for (const name of ["a", "b"]) {
          assert.ok(begun.filter((one) => one.group === name).length <= 1);
        }
      }
      const waiting = order.takeWaiting();
      for (const one of entered) {
        const places = [ended.has(one.number), begun.includes(one), waiting.includes(one)];
        assert.equal(places.filter(Boolean).length, 1, "each is in one place");
      }
      // Nothing of a group is done while an earlier one of it is still in hand.
      for (const one of [...begun, ...waiting].filter(({ group }) => group !== undefined)) {
        const later = entered.filter(({ group, number }) => group === one.group && number > one.number);
        assert.ok(later.every(({ number }) => ended.get(number) !== "done"));
      }
    }),
  );
});
