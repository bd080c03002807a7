import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import test, { describe } from "node:test";
import { InboxError } from "../../../src/errors.ts";
import { kafka } from "../../../src/sources/kafka/kafka.ts";
import { chosenClients } from "../../services/kafka-clients.ts";
import { ownService } from "../../services/service.ts";
import { testIntake } from "../../support/intake.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import {
  ack,
  assertCommitted,
  clients,
  drive,
  eventually,
  identity,
  idOf,
  testTopic,
  topicAt,
  type Driven,
} from "./support.ts";

// What goes wrong at the broker, or with the log, on the real broker.

const nobody = { deliver: () => Promise.resolve(), end: () => undefined };

describe("failures at the broker", { concurrency: true }, () => {
  for (const [name, makeClient] of chosenClients(clients)) {
    describe(name, { concurrency: 4 }, () => {
      test(`${name}: a start without any broker fails, and says so`, { timeout: 60_000 }, async (t) => {
        const client = await makeClient(t, { brokers: ["127.0.0.1:1"] });
        if (client === undefined) return;
        const source = kafka({ client, topics: ["payments"], groupId: "g", identity });
        await assert.rejects(source.start(testIntake({ ...nobody, warn: () => undefined })), (error) => {
          assert.ok(error instanceof InboxError && error.code === "source-failed", String(error));
          assert.match(error.message, /broker/i);
          return true;
        });
        await source.close();
      });

      test(`${name}: a start with a topic that is not there fails, and names it`, async (t) => {
        const at = await testTopic(t);
        const client = at && (await makeClient(t, at));
        if (client === undefined) return;
        const missing = `${at!.topic}-missing`;
        const source = kafka({ client, topics: [at!.topic, missing], groupId: at!.groupId, identity });
        await assert.rejects(source.start(testIntake({ ...nobody, warn: () => undefined })), (error) => {
          assert.ok(error instanceof InboxError && error.code === "source-failed", String(error));
          assert.ok(error.message.includes(missing), error.message);
          return true;
        });
        await source.close();
      });

      test(`${name}: records that retention deleted are passed, and it is said`, async (t) => {
        const at = await testTopic(t);
        const client = at && (await makeClient(t, at));
        if (at === undefined || client === undefined) return;
        const { topic, groupId } = at;
        await at.publish(["a", "b", "c", "d"].map((id) => ({ id })));
        await at.setCommitted(1);
        await at.admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "3" }] });
        const driven = await drive(
          t,
          kafka({ client, topics: [topic], groupId, identity, commitIntervalMs: 20 }),
        );
        assert.deepEqual((await driven.take(1)).map(idOf), ["d"]);
        await driven.until("a warning", () => driven.warnings.length > 0);
        assert.match(driven.warnings[0]!, /begins at offset 3, and the group had come to 1/);
        driven.ackAll();
        await assertCommitted(at, 4);
      });

      test(`${name}: a topic that was made anew is read from its beginning, and it is said`, async (t) => {
        const at = await testTopic(t);
        const client = at && (await makeClient(t, at));
        if (at === undefined || client === undefined) return;
        const { topic, groupId } = at;
        await at.publish([{ id: "new" }]);
        await at.setCommitted(7);
        const driven = await drive(
          t,
          kafka({ client, topics: [topic], groupId, identity, commitIntervalMs: 20 }),
        );
        assert.deepEqual((await driven.take(1)).map(idOf), ["new"]);
        await driven.until("a warning", () => driven.warnings.some((text) => /ends at offset 1/.test(text)));
        driven.ackAll();
        await assertCommitted(at, 1);
      });

      test(`${name}: no room for longer than the poll interval keeps the member in its group, and the memory bounded`, async (t) => {
        const at = await testTopic(t);
        const client = at && (await makeClient(t, { ...at, sessionTimeoutMs: 2_000, pollIntervalMs: 3_000 }));
        if (at === undefined || client === undefined) return;
        await at.publish(Array.from({ length: 500 }, (_, i) => ({ id: `m${i}`, value: "x".repeat(1_000) })));
        let free = (): void => undefined;
        const room = new Promise<void>((resolve) => (free = resolve));
        const source = kafka({
          client,
          topics: [at.topic],
          groupId: at.groupId,
          identity,
          commitIntervalMs: 20,
        });
        const driven = await drive(t, source, { maxInHand: 20, maxInHandBytes: 30_000 }, () => room);
        const first = await driven.take(20);
        await sleep(6_000);
        assert.equal(driven.delivered.length, 20, "no more than there is room for");
        assert.ok(
          source.progress().partitions[0]!.unsettled <= 100,
          "no more was read than a poll or two give",
        );
        free();
        await source.settle(first.map((delivery) => [delivery, ack]));
        driven.ackAll();
        await assertCommitted(at, 500);
        const ids = driven.delivered.map(idOf);
        assert.equal(new Set(ids).size, 500);
        assert.equal(ids.length, 500, "a member that had left its group would have been given some again");
        assert.deepEqual(driven.warnings, []);
      });

      test(`${name}: one record that is not settled does not let more than maxAhead be read behind it`, async (t) => {
        const at = await testTopic(t);
        const client = at && (await makeClient(t, at));
        if (at === undefined || client === undefined) return;
        await at.publish(Array.from({ length: 400 }, (_, i) => ({ id: `m${i}` })));
        const source = kafka({
          ...{ client, topics: [at.topic], groupId: at.groupId, identity },
          ...{ commitIntervalMs: 20, maxAhead: 50 },
        });
        const driven = await drive(t, source, { maxInHand: 20 });
        const [stuck] = await driven.take(1);
        await source.settle([[stuck!, { kind: "retry", afterMs: 3_600_000 }]]);
        driven.ackAll();
        await driven.until("the pause", () => driven.warnings.length > 0);
        assert.match(driven.warnings[0]!, /is not read on: 50 records/);
        await sleep(500);
        assert.ok(driven.delivered.length <= 90, `${driven.delivered.length}`);
      });

      test(`${name}: a topic that is deleted while it is read ends the source, which says so`, async (t) => {
        const at = await testTopic(t);
        const client = at && (await makeClient(t, at));
        if (at === undefined || client === undefined) return;
        await at.publish([{ id: "a" }]);
        const source = kafka({
          ...{ client, topics: [at.topic], groupId: at.groupId, identity },
          ...{ commitIntervalMs: 20, brokerTimeoutMs: 3_000 },
        });
        const driven = await drive(t, source);
        driven.ackAll();
        await driven.take(1);
        await at.admin.deleteTopics({ topics: [at.topic] });
        const error = await driven.ended;
        assert.ok(error instanceof InboxError && error.code === "source-failed", String(error));
        assert.match(error.message, name === "kafkajs" ? /does not host this topic/ : /There is no topic/);
        assert.ok(driven.warnings.length > 0);
      });

      test(`${name}: no partition is left out while handlers are slow`, { timeout: 90_000 }, async (t) => {
        const partitions = 6;
        const at = await testTopic(t, { numPartitions: partitions });
        const client = at && (await makeClient(t, at));
        if (at === undefined || client === undefined) return;
        for (let partition = 0; partition < partitions; partition++) {
          const value = "x".repeat(100);
          await at.publish(
            Array.from({ length: 300 }, (_, i) => ({ id: `${partition}-${i}`, partition, value })),
          );
        }
        const source = kafka({
          client,
          topics: [at.topic],
          groupId: at.groupId,
          identity,
          commitIntervalMs: 20,
        });
        const driven = await drive(t, source, { maxInHand: 50, maxInHandBytes: 5_000 });
        const seen = new Set<string>();
        for (let round = 0; round < 25 && seen.size < partitions; round++) {
          const batch = await driven.take(37);
          for (const delivery of batch) seen.add(idOf(delivery)!.split("-")[0]!);
          // Longer than a client waits for room before it rests.
          await sleep(1_100);
          await source.settle(batch.map((delivery) => [delivery, ack]));
        }
        assert.equal(seen.size, partitions, [...seen].join());
      });
    });
  }

  test(
    "with the broker gone for brokerTimeoutMs a source ends with an error, and its client ends when there is one again",
    { concurrency: true },
    async (t) => {
      const own = await ownService(t, "kafka");
      if (own === undefined) return;
      const { target, advertised } = own.facts.proxied!;
      const line = await faultProxy(t, target, advertised.port);
      let left = chosenClients(clients).length;
      const hasRead = (): void => {
        if (--left > 0) return;
        line.refuses = true;
        line.cutAll();
      };
      await Promise.all(
        chosenClients(clients).map(([name, makeClient]) =>
          t.test(name, async (t) => {
            let driven: Driven;
            try {
              const client = await makeClient(t, { brokers: [`${line.host}:${line.port}`] });
              if (client === undefined) return;
              const at = await topicAt(t, own.facts.brokers);
              await at.publish([{ id: "a" }]);
              const source = kafka({
                ...{ client, topics: [at.topic], groupId: at.groupId, identity },
                ...{ commitIntervalMs: 20, brokerTimeoutMs: 3_000 },
              });
              driven = await drive(t, source);
              driven.ackAll();
              await driven.take(1);
            } finally {
              hasRead();
            }
            const error = await driven.ended;
            assert.match(String(error), /No broker has answered for \d+ ms \(brokerTimeoutMs: 3000\)/);
            const startedAt = performance.now();
            await driven.source.stop();
            await driven.source.close();
            const tookMs = performance.now() - startedAt;
            assert.ok(tookMs < 20_000, `a close does not wait long for a broker that is gone: ${tookMs} ms`);
          }),
        ),
      );
      line.refuses = false;
      assert.equal(
        await eventually(
          () => line.connections,
          (count) => count === 0,
        ),
        0,
      );
    },
  );
});
