import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Delivery, Settlement } from "../../../src/sources/source.ts";
import { clientNames, clients, drive, idOf, testQueue, until } from "./support.ts";

describe("what becomes of deliveries", { concurrency: true }, () => {
  for (const name of clientNames) {
    const client = clients[name];

    test(`${name}: what is acknowledged is gone, what is not comes again as redelivered`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      for (const messageId of ["a", "b", "c"]) await at.publish("{}", { messageId });
      const first = await drive(t, { client: client(at.url), queue: at.queue });
      const [a, b, c] = (await first.take(3)) as [Delivery, Delivery, Delivery];
      assert.deepEqual([a, b, c].map(idOf), ["a", "b", "c"]);
      assert.ok(!a.redelivered && !b.redelivered && !c.redelivered);
      await first.source.settle([
        [c, { kind: "ack" }],
        [a, { kind: "ack", quarantined: true }],
      ]);
      assert.equal(first.source.progress().unsettled, 1);
      await first.source.close();
      assert.equal(await at.ready(), 1);

      const second = await drive(t, { client: client(at.url), queue: at.queue });
      const again = await second.next();
      assert.equal(idOf(again), "b");
      assert.ok(again.redelivered);
      await second.settle(again);
      await second.source.close();
      assert.equal(await at.ready(), 0);
    });

    test(`${name}: a message that is to be retried waits here, unacknowledged, and is handed over again in time`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      await at.publish("{}", { messageId: "a" });
      const driven = await drive(t, { client: client(at.url), queue: at.queue });
      await driven.settle(await driven.next(), { kind: "retry", afterMs: 600_000 });
      assert.equal(driven.source.progress().held, 1);
      assert.equal(await at.ready(), 0);
      await at.publish("{}", { messageId: "b" });
      const first = await driven.next();
      assert.equal(idOf(first), "b", "others pass it");
      const settledAt = performance.now();
      await driven.settle(first, { kind: "retry", afterMs: 300 });
      assert.equal(driven.source.progress().held, 2);
      const second = await driven.next();
      assert.ok(performance.now() - settledAt >= 295);
      assert.equal(idOf(second), "b");
      assert.ok(second.redelivered);
      assert.notEqual(second, first);
      await driven.settle(second);
      await driven.source.close();
      await until("the one that waited is back", async () => (await at.ready()) === 1);
    });

    test(`${name}: what is released or waits for a retry is back in the queue when the source has stopped`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      for (const messageId of ["a", "b", "c", "d"]) await at.publish("{}", { messageId });
      const driven = await drive(t, { client: client(at.url), queue: at.queue });
      const [a, b, c, d] = (await driven.take(4)) as [Delivery, Delivery, Delivery, Delivery];
      await driven.settle(a, { kind: "retry", afterMs: 1_000_000 });
      await driven.source.stop();
      await until("the held one is back", async () => (await at.ready()) === 1);
      await driven.source.settle([
        [b, { kind: "release" }],
        [c, { kind: "retry", afterMs: 1_000 }],
        [d, { kind: "ack" }],
      ]);
      await until("the others are back", async () => (await at.ready()) === 3);
      await driven.source.close();
      await driven.source.close();
      assert.equal(await at.ready(), 3);
      assert.equal(driven.untaken, 0);
    });

    test(`${name}: a message whose retry is too far away goes back to the queue shortly before the broker would take it`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      await at.publish("{}", { messageId: "a" });
      const queueFacts = { type: "classic", acknowledgementTimeoutMs: 100_000 } as const;
      let time = 0;
      const driven = await drive(
        t,
        { client: client(at.url), queue: at.queue, queueFacts, now: () => time },
        { handlerTimeoutMs: 500 },
      );
      const first = await driven.next();
      // By the source's clock it has half a second left of the 80 seconds that it may wait.
      time = 79_500;
      const settledAt = performance.now();
      await driven.settle(first, { kind: "retry", afterMs: 600_000 });
      const second = await driven.next();
      assert.ok(performance.now() - settledAt >= 490);
      assert.ok(second.redelivered);
      await driven.settle(second);
      assert.match(driven.warnings.join("\n"), /retry was asked for later than .* \(100000 ms\)/);
      await driven.source.close();
      assert.equal(await at.ready(), 0);
    });

    test(`${name}: a thousand settled in any order, in parts, are all acknowledged`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      const count = 1_000;
      for (let i = 0; i < count; i++)
        at.admin.sendToQueue(at.queue, Buffer.from("{}"), { messageId: `m${i}` });
      await at.admin.waitForConfirms();
      const driven = await drive(t, { client: client(at.url), queue: at.queue });
      let settled = 0;
      const seen = new Set<string | undefined>();
      let hand: (readonly [Delivery, Settlement])[] = [];
      while (settled < count) {
        const delivery = await driven.next();
        seen.add(idOf(delivery));
        // Every third in front, so that neither the order nor its reverse is kept.
        hand[hand.length % 3 === 0 ? "unshift" : "push"]([delivery, { kind: "ack" }]);
        if (hand.length < 30 && settled + hand.length < count) continue;
        settled += hand.length;
        await driven.source.settle(hand);
        hand = [];
      }
      assert.equal(seen.size, count);
      assert.ok(driven.source.progress().prefetch > 32, "the prefetch has grown");
      await driven.source.close();
      assert.equal(await at.ready(), 0);
      assert.equal(driven.source.progress().lostChannels, 0);
      assert.deepEqual(driven.warnings, []);
    });

    test(`${name}: the lag is what waits in the queue and what is in hand, and asking for a queue that is gone harms nobody`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      for (const messageId of ["a", "b", "c"]) await at.publish("{}", { messageId });
      const driven = await drive(t, { client: client(at.url), queue: at.queue, prefetch: 1 });
      const delivery = await driven.next();
      assert.equal(await driven.source.lag!(), 3);
      await driven.settle(delivery);
      await until("one less", async () => (await driven.source.lag!()) === 2);
      await driven.source.stop();
      assert.equal(await driven.source.lag!(), undefined);
    });
  }
});
