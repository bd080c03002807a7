import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { receiveMessage } from "../../src/message/create-message.ts";
import { paced, type PaceClock } from "../../src/replay/paced.ts";
import type { Delivery, Intake, Source } from "../../src/sources/source.ts";

/** A clock that goes from one timer to the next. */
function testClock(): PaceClock & { advance(ms: number): Promise<void> } {
  let now = 0;
  let timers: { at: number; call: () => void }[] = [];
  const turns = async (): Promise<void> => {
    for (let n = 0; n < 20; n++) await Promise.resolve();
  };
  return {
    now: () => now,
    after(ms, call) {
      const timer = { at: now + ms, call };
      timers.push(timer);
      return () => void (timers = timers.filter((one) => one !== timer));
    },
    async advance(ms) {
      const until = now + ms;
      for (;;) {
        await turns();
        const due = timers.filter(({ at }) => at <= until);
        if (due.length === 0) break;
        const next = due.reduce((first, one) => (one.at < first.at ? one : first));
        timers = timers.filter((one) => one !== next);
        now = Math.max(now, next.at);
        next.call();
      }
      if (Number.isFinite(until)) now = until;
    },
  };
}

const delivery = (n: number): Delivery => ({
  received: receiveMessage({ producer: "shop", id: String(n), payload: "" }),
  redelivered: false,
});

function handedOver(perSecond: number) {
  const clock = testClock();
  let intake: Intake | undefined;
  const inner: Source = {
    name: "test",
    async start(given) {
      intake = given;
    },
    settle: async () => undefined,
    stop: async () => undefined,
    close: async () => undefined,
  };
  const source = paced(inner, perSecond, clock);
  const at: number[] = [];
  const deliver = async (list: readonly Delivery[]): Promise<void> => {
    for (const _ of list) at.push(clock.now());
  };
  return {
    ...{ clock, source, at },
    start: () => source.start({ deliver } as Intake),
    give: (count: number) => intake!.deliver(Array.from({ length: count }, (_, n) => delivery(n))),
  };
}

test("whatever comes in whatever portions, no span of time has more than the rate and one part", async () => {
  const portions = fc.array(fc.tuple(fc.nat(300), fc.nat(3_000)), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 2_000 }), portions, async (rate, list) => {
      const { clock, source: _, at, start, give } = handedOver(rate);
      await start();
      const given: Promise<void>[] = [];
      for (const [count, idleMs] of list) {
        given.push(give(count));
        await clock.advance(idleMs);
      }
      await clock.advance(Number.POSITIVE_INFINITY);
      await Promise.all(given);
      assert.equal(
        at.length,
        list.reduce((sum, [count]) => sum + count, 0),
      );
      const part = Math.max(1, Math.floor(rate / 20));
      for (let first = 0; first < at.length; first++) {
        for (const span of [50, 333, 1_000, 5_000]) {
          const within = at.slice(first).filter((time) => time < at[first]! + span).length;
          assert.ok(within <= (rate * span) / 1_000 + part + 1, `${within} in ${span} ms at ${rate}`);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("a stop lets go of what waits for its turn, and hands none of it over", async () => {
  const { source, at, start, give } = handedOver(1);
  await start();
  const given = give(10);
  await Promise.resolve();
  await source.stop();
  await given;
  assert.equal(at.length, 1);
});
