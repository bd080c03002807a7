import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { faultProxy } from "../../support/fault-proxy.ts";
import { clientNames, clients, drive, idOf, testQueue, until } from "./support.ts";

describe("a channel, a connection, a queue or a broker is lost", { concurrency: true }, () => {
  for (const name of clientNames) {
    const client = clients[name];

    test(`${name}: an acknowledgement never leaves on another channel than its delivery came on`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      const proxy = await faultProxy(t, at);
      await at.publish("{}", { messageId: "a" });
      const url = at.url.replace(`:${at.port}`, `:${proxy.port}`);
      const driven = await drive(t, { client: client(url), queue: at.queue, prefetch: 1 });
      const stale = await driven.next();
      proxy.cutAll();
      const fresh = await driven.next();
      assert.equal(idOf(fresh), "a");
      assert.ok(fresh.redelivered);
      // Both are the first message of their channel: sent there, this acknowledgement would settle the other one.
      await driven.settle(stale);
      assert.deepEqual(
        { late: driven.source.progress().lateSettlements, unsettled: driven.source.progress().unsettled },
        { late: 1, unsettled: 1 },
      );
      await driven.settle(fresh, { kind: "release" });
      const third = await driven.next();
      assert.equal(idOf(third), "a");
      await driven.settle(third);
      await driven.source.close();
      assert.equal(await at.ready(), 0);
      assert.equal(driven.source.progress().lostChannels, 1);
      assert.match(driven.warnings.join("\n"), /channel was lost \(1 so far\)/);
    });

    test(`${name}: messages that waited for a retry, or for room, come again after a loss, once`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      const proxy = await faultProxy(t, at);
      for (const messageId of ["a", "b"]) await at.publish("{}", { messageId });
      const url = at.url.replace(`:${at.port}`, `:${proxy.port}`);
      const driven = await drive(t, { client: client(url), queue: at.queue });
      const [a] = await driven.take(2);
      await driven.settle(a!, { kind: "retry", afterMs: 200 });
      proxy.cutAll();
      const again = await driven.take(2);
      assert.deepEqual(again.map(idOf), ["a", "b"]);
      assert.equal(driven.source.progress().held, 0);
      for (const delivery of again) await driven.settle(delivery);
      await at.publish("{}", { messageId: "c" });
      assert.equal(idOf(await driven.next()), "c", "nothing came from the timer of the lost one");
      assert.equal(driven.untaken, 0);
    });

    test(`${name}: a queue that is deleted and made again is consumed again`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      await at.publish("{}", { messageId: "a" });
      const driven = await drive(t, { client: client(at.url), queue: at.queue });
      const a = await driven.next();
      await at.admin.deleteQueue(at.queue);
      await until("the loss is seen", () => driven.source.progress().lostChannels === 1);
      await driven.settle(a);
      await at.admin.assertQueue(at.queue, { durable: true });
      await at.publish("{}", { messageId: "b" });
      const b = await driven.next();
      assert.equal(idOf(b), "b");
      await driven.settle(b);
      assert.match(driven.warnings.join("\n"), /cancelled the consumer/);
      await driven.source.close();
      assert.equal(await at.ready(), 0);
    });

    test(`${name}: a queue that stays away ends the source with an error that says so`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      const driven = await drive(t, {
        ...{ client: client(at.url), queue: at.queue },
        missingQueueTimeoutMs: 200,
      });
      await at.admin.deleteQueue(at.queue);
      const error = await driven.ended;
      assert.match(String(error?.message), /queue is gone and did not come back within 200 ms: .*NOT.FOUND/);
      await driven.source.close();
    });

    test(`${name}: the start fails where the queue, the broker or the user is not there, and says no password`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      const start = async (url: string, queue: string, answerTimeoutMs?: number): Promise<Error> => {
        try {
          await drive(t, { client: client(url), queue, answerTimeoutMs });
        } catch (error) {
          return error as Error;
        }
        throw new Error("It started.");
      };
      const proxy = await faultProxy(t, at);
      proxy.goSilentAfter("AMQP");
      const [missing, refused, silent] = await Promise.all([
        start(at.url, `${at.queue}-not-there`),
        // rabbitmq-client tries on for as long as it may take.
        start(at.url.replace(/\/\/[^@]*@/, "//someone:s3cr3t-w0rd@"), at.queue, 2_000),
        start(at.url.replace(`:${at.port}`, `:${proxy.port}`), at.queue, 500),
      ]);
      assert.equal((missing as { code?: string }).code, "source-failed");
      assert.match(missing.message, /NOT.FOUND/);
      assert.doesNotMatch(JSON.stringify([refused.message, String(refused.stack)]), /s3cr3t/);
      assert.match(silent.message, /did not answer within 500 ms/);
    });

    test(`${name}: stop and close end in time where the broker has gone silent`, async (t) => {
      const at = await testQueue(t);
      if (at === undefined) return;
      const proxy = await faultProxy(t, at);
      await at.publish("{}", { messageId: "a" });
      const url = at.url.replace(`:${at.port}`, `:${proxy.port}`);
      const driven = await drive(t, { client: client(url), queue: at.queue, answerTimeoutMs: 2_000 });
      const a = await driven.next();
      // basic.cancel on the wire: class 60, method 30.
      proxy.goSilentAfter("\u0000<\u0000\u001e");
      await driven.source.stop();
      await driven.settle(a);
      await driven.source.close();
      assert.equal(driven.source.progress().lateSettlements, 1);
      proxy.cutAll();
      await until("the broker has it again", async () => (await at.ready()) === 1);
    });
  }
});
