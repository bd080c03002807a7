import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import type { AmqpChannel, AmqpMessage } from "../../../src/sources/rabbitmq/client.ts";
import { createLink, type Unsettled } from "../../../src/sources/rabbitmq/link.ts";

/** A broker's side of a channel: closes it, as RabbitMQ does, for a tag that it does not know. */
function brokerChannel(): {
  readonly channel: AmqpChannel;
  readonly open: Set<number>;
  readonly acked: number[];
  readonly back: number[];
  frames: number;
  dead: boolean;
} {
  const open = new Set<number>();
  const acked: number[] = [];
  const back: number[] = [];
  const take = (tag: number, into: number[]): void => {
    if (!open.delete(tag)) throw new Error(`PRECONDITION_FAILED - unknown delivery tag ${tag}`);
    into.push(tag);
  };
  const state = {
    ...{ open, acked, back, frames: 0, dead: false },
    channel: {
      ack(tag: number, upTo: boolean) {
        if (state.dead) throw new Error("the channel is closed");
        state.frames++;
        for (const other of upTo ? [...open].filter((one) => one < tag) : []) take(other, acked);
        take(tag, acked);
      },
      giveBack(tag: number) {
        if (state.dead) throw new Error("the channel is closed");
        take(tag, back);
      },
    } as AmqpChannel,
  };
  return state;
}

const still = (): number => 0;

const message = (tag: number, bytes = 10): AmqpMessage => ({
  ...{ tag, redelivered: false, exchange: "", routingKey: "q", properties: {} },
  body: new Uint8Array(bytes),
});

test("whatever the order, each delivery is acknowledged or given back once, and what is open stays open", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.boolean()), { minLength: 1, maxLength: 60 }),
      fc.infiniteStream(fc.nat(1_000)),
      fc.nat(5),
      (plan, picks, leaveOpen) => {
        const broker = brokerChannel();
        const settledOnes: number[] = [];
        let time = 0;
        const link = createLink(
          broker.channel,
          () => time,
          ({ tag }) => settledOnes.push(tag),
        );
        const work: (() => void)[] = [];
        for (const [i, [parts, again]] of plan.entries()) {
          broker.open.add(i + 1);
          const delivery = link.take(message(i + 1), parts, 0);
          // One of its messages is to come again: so is the whole of it.
          for (let part = 0; part < parts; part++)
            work.push(() => link.settle(delivery, again && part === 0));
        }
        const open = new Set<number>();
        while (work.length > leaveOpen) {
          time += picks.next().value;
          const [next] = work.splice(picks.next().value % work.length, 1);
          next!();
          if (picks.next().value % 4 === 0) assert.equal(link.flush(picks.next().value % 2 === 0), 0);
        }
        link.flush(true);
        for (const tag of broker.open) open.add(tag);
        assert.equal(link.unsettled, open.size);
        assert.equal(link.unsettledBytes, open.size * 10);
        assert.equal(new Set(settledOnes).size, settledOnes.length);
        assert.equal(settledOnes.length + open.size, plan.length);
        for (const tag of broker.acked)
          assert.ok(!plan[tag - 1]![1], `${tag} was acknowledged and is to come again`);
        for (const tag of broker.back) assert.ok(plan[tag - 1]![1]);
      },
    ),
  );
});

test("a run of finished deliveries takes one frame", () => {
  const broker = brokerChannel();
  const link = createLink(broker.channel, still, () => undefined);
  const list = Array.from({ length: 100 }, (_, i) => {
    broker.open.add(i + 1);
    return link.take(message(i + 1), 1, 0);
  });
  for (const delivery of list.slice(0, 99).reverse()) link.settle(delivery, false);
  link.flush(true);
  assert.equal(broker.frames, 1);
  assert.deepEqual([...broker.open], [100]);
});

test("what is done waits for those before it and leaves with them, for as long as those move on", () => {
  const broker = brokerChannel();
  let time = 0;
  const link = createLink(
    broker.channel,
    () => time,
    () => undefined,
  );
  const list = Array.from({ length: 1_000 }, (_, i) => {
    broker.open.add(i + 1);
    return link.take(message(i + 1), 1, 0);
  });
  const settle = (...tags: number[]): void => tags.forEach((tag) => link.settle(list[tag - 1]!, false));
  settle(900, 3, 4, 2);
  assert.equal(link.flush(false), 0);
  assert.deepEqual([broker.frames, link.waiting, link.unsettled], [0, 4, 1_000]);
  settle(1);
  link.flush(false);
  assert.deepEqual([broker.frames, broker.acked, link.waiting], [1, [1, 2, 3, 4], 1]);
  // A quarter of a millisecond for each that is unsettled.
  time = 248;
  settle(7);
  link.flush(false);
  assert.deepEqual([broker.frames, link.waiting], [1, 2]);
  time = 250;
  link.flush(false);
  assert.deepEqual([broker.acked.slice(4), link.waiting, link.unsettled], [[7, 900], 0, 994]);
  settle(8);
  link.flush(false);
  assert.equal(link.waiting, 0, "the fifth is stuck, and nobody waits for it");
  // However fast they move on, nothing waits for longer than two seconds.
  settle(1_000);
  for (let tag = 5; tag < 100; tag++) {
    settle(tag);
    link.flush(false);
    assert.equal(broker.acked.includes(1_000), time >= 2_250, `${time} ms`);
    time += 50;
  }
});

test("of a few unsettled ones each is acknowledged at once, and what waits is, when all are asked for", () => {
  const broker = brokerChannel();
  const link = createLink(broker.channel, still, () => undefined);
  const take = (tag: number): Unsettled => {
    broker.open.add(tag);
    return link.take(message(tag), 1, 0);
  };
  const list = Array.from({ length: 10 }, (_, i) => take(i + 1));
  link.settle(list[8]!, false);
  link.settle(list[5]!, false);
  link.flush(false);
  assert.deepEqual([broker.acked, link.waiting, link.unsettled], [[6, 9], 0, 8]);
  for (let tag = 11; tag <= 100; tag++) list.push(take(tag));
  link.settle(list[98]!, false);
  link.settle(list[49]!, false);
  link.flush(false);
  assert.deepEqual([broker.acked.length, link.waiting], [2, 2]);
  link.flush(true);
  assert.deepEqual([broker.acked, link.waiting, link.unsettled], [[6, 9, 50, 99], 0, 96]);
});

test("a delivery that the client lost is given back instead of staying unsettled for ever", () => {
  const broker = brokerChannel();
  const link = createLink(broker.channel, still, () => undefined);
  for (const tag of [1, 2, 3, 4]) broker.open.add(tag);
  link.take(message(1), 1, 0);
  link.take(message(4), 1, 0);
  assert.deepEqual(broker.back, [2, 3]);
});

test("what cannot be sent is counted and never sent later", () => {
  const broker = brokerChannel();
  const link = createLink(broker.channel, still, () => undefined);
  for (const tag of [1, 2]) broker.open.add(tag);
  const [a, b] = [link.take(message(1), 1, 0), link.take(message(2), 1, 0)];
  link.settle(a, false);
  broker.dead = true;
  assert.equal(link.flush(true), 1);
  assert.ok(!link.alive);
  broker.dead = false;
  link.settle(b, true);
  assert.equal(link.flush(true), 1);
  assert.deepEqual([broker.acked, broker.back], [[], []]);
});
