import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { createWindow, fixedWindow, type WindowOptions } from "../../../src/sources/rabbitmq/window.ts";
import { clients, drive, testQueue } from "./support.ts";

const options: WindowOptions = {
  most: 4_000,
  mostBytes: 64_000_000,
  mostHeld: 10_000,
  mostInHandMs: 1_800_000,
};

/** A broker that keeps the window full with messages of one size, each settled after the same time. */
function runFull(bytes: number, inHandMs: number, rounds: number, given = options): number {
  const window = createWindow(given);
  for (let round = 0; round < rounds; round++) {
    const { size } = window;
    for (let i = 0; i < size; i++) window.arrived(bytes);
    for (let i = 0; i < size; i++) window.settled(inHandMs);
    window.move({ unsettled: size, unsettledBytes: size * bytes, held: 0 });
  }
  return window.size;
}

test("small and quick messages get all that the run takes, in a few steps", () => {
  assert.equal(runFull(300, 50, 4), 4_000);
  assert.equal(createWindow({ ...options, most: 7 }).size, 7);
});

test("large messages never fill more than the bytes that the run takes", () => {
  const size = runFull(1_000_000, 50, 10);
  assert.ok(size * 1_000_000 <= options.mostBytes, String(size));
});

test("slow messages are not sent ahead for longer than the broker waits for them", () => {
  // Two seconds each, one after another: the last of a full window has waited for all the others.
  const window = createWindow(options);
  for (let round = 0; round < 10; round++) {
    const { size } = window;
    for (let i = 0; i < size; i++) window.arrived(300);
    for (let i = 1; i <= size; i++) window.settled(i * 2_000);
    window.move({ unsettled: size, unsettledBytes: size * 300, held: 0 });
  }
  assert.ok(window.size * 2_000 <= options.mostInHandMs / 2, String(window.size));
});

test("messages that turn out large later make it shrink, before more of them come", () => {
  const window = createWindow(options);
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < window.size; i++) window.arrived(100);
    for (let i = 0; i < window.size; i++) window.settled(5);
    window.move({ unsettled: window.size, unsettledBytes: window.size * 100, held: 0 });
  }
  assert.equal(window.size, 4_000);
  assert.ok(window.move({ unsettled: 200, unsettledBytes: 70_000_000, held: 0 }));
  assert.ok(window.size <= 100, String(window.size));
});

test("messages that wait for a retry take no room from others, up to their limit", () => {
  const window = createWindow({ ...options, most: 32, mostHeld: 500 });
  const facts = (held: number): Parameters<typeof window.move>[0] => ({
    ...{ unsettled: held + 10, unsettledBytes: 0, held },
  });
  assert.ok(!window.move(facts(10)));
  assert.ok(window.move(facts(30)));
  assert.ok(window.size - 30 >= 32);
  assert.ok(window.move(facts(150)));
  window.move(facts(450));
  window.move(facts(5_000));
  assert.equal(window.size, 532);
  assert.ok(window.move(facts(0)));
  assert.equal(window.size, 32);
});

test("whatever happens, the size is from 1 to what the protocol and the options allow, and comes to rest", () => {
  const facts = fc.record({
    unsettled: fc.nat(100_000),
    unsettledBytes: fc.nat(2 ** 31),
    held: fc.nat(100_000),
  });
  fc.assert(
    fc.property(
      fc.record({ most: fc.integer({ min: 1, max: 65_535 }), mostHeld: fc.nat(65_535) }),
      fc.array(fc.tuple(fc.nat(10_000_000), fc.nat(3_600_000), facts), { maxLength: 40 }),
      (given, steps) => {
        const window = createWindow({ ...options, ...given });
        for (const [bytes, ms, seen] of steps) {
          for (let i = 0; i < 50; i++) {
            window.arrived(bytes);
            window.settled(ms);
          }
          window.move(seen);
          assert.ok(Number.isInteger(window.size) && window.size >= 1, String(window.size));
          assert.ok(window.size <= Math.min(65_535, given.most + given.mostHeld));
        }
        // The same picture again and again, with nothing new settled, must not make it ask the broker for ever.
        const last = steps.at(-1)?.[2] ?? { unsettled: 1, unsettledBytes: 1, held: 0 };
        let moves = 0;
        while (moves < 100 && window.move(last)) moves++;
        assert.ok(moves < 40, `${moves} moves`);
      },
    ),
  );
});

test("a size that the user chose stays", () => {
  const window = fixedWindow(17);
  window.arrived(1e9);
  window.settled(1e9);
  assert.ok(!window.move({ unsettled: 17, unsettledBytes: 1e10, held: 17 }));
  assert.equal(window.size, 17);
});

test("a single active consumer stays active: its prefetch does not grow, so the one that stands by gets nothing", async (t) => {
  const there = await testQueue(t, { "x-queue-type": "quorum", "x-single-active-consumer": true });
  if (there === undefined) return;
  const options = {
    ...{ client: clients.amqplib(there.url), queue: there.queue },
    queueFacts: { type: "quorum", singleActiveConsumer: true } as const,
  };
  const active = await drive(t, options);
  const standsBy = await drive(t, options);
  const count = 400;
  for (let i = 0; i < count; i++) {
    there.admin.sendToQueue(there.queue, Buffer.from("{}"), { messageId: `m${i}` });
  }
  await there.admin.waitForConfirms();
  // Enough at once, and settled soon: a growing window would grow.
  for (let left = count; left > 0; left -= 100) {
    for (const delivery of await active.take(100)) await active.settle(delivery);
  }
  assert.equal(standsBy.untaken, 0);
});
