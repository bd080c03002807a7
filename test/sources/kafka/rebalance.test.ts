import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { kafka, type KafkaSource } from "../../../src/sources/kafka/kafka.ts";
import { chosenClients } from "../../services/kafka-clients.ts";
import {
  ack,
  assertCommitted,
  clients,
  drive,
  eventually,
  identity,
  idOf,
  testTopic,
  type TestTopic,
} from "./support.ts";

// Who owns a partition while members come and go with messages in hand, on the real broker.

const variants = [
  { how: "cooperative", eager: false },
  { how: "eager", eager: true },
] as const;

describe("rebalances", { concurrency: 6 }, () => {
  for (const [name, makeClient] of chosenClients(clients)) {
    for (const { how, eager } of variants) {
      // All its rebalances are eager.
      if (name === "kafkajs" && !eager) continue;
      const open = async (t: test.TestContext, at: TestTopic, revokeTimeoutMs: number) => {
        const client = await makeClient(t, { ...at, eager });
        if (client === undefined) return undefined;
        return (): KafkaSource =>
          kafka({
            ...{ client, topics: [at.topic], groupId: at.groupId, identity },
            ...{ commitIntervalMs: 20, revokeTimeoutMs },
          });
      };
      const fill = (at: TestTopic, from: number, to: number): Promise<void> => {
        const records = [];
        for (let i = from; i < to; i++)
          for (const partition of [0, 1]) records.push({ id: `${partition}-${i}`, partition });
        return at.publish(records);
      };
      const partitionsOf = (source: KafkaSource): number[] =>
        source
          .progress()
          .partitions.map(({ partition }) => partition)
          .sort();

      test(`${name}, ${how}: what is settled in time is not delivered again to the new owner`, async (t) => {
        const at = await testTopic(t, { numPartitions: 2 });
        const make = at && (await open(t, at, 5_000));
        if (at === undefined || make === undefined) return;
        await fill(at, 0, 3);
        const first = await drive(t, make());
        const held = await first.take(6);
        const second = await drive(t, make());
        // The first one is asked to give a partition back, and does not answer while messages of it are in hand.
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        assert.deepEqual(second.delivered, []);
        await first.source.settle(held.map((delivery) => [delivery, ack]));
        assert.equal(
          (
            await eventually(
              (): number[] => partitionsOf(second.source),
              (list) => list.length === 1,
            )
          ).length,
          1,
        );
        first.ackAll();
        second.ackAll();
        await fill(at, 3, 5);
        for (const partition of [0, 1]) {
          await assertCommitted(at, 5, partition);
        }
        const ids = [...first.delivered, ...second.delivered].map(idOf);
        assert.equal(ids.length, 10, ids.join(" "));
        assert.equal(new Set(ids).size, 10);
        assert.ok(second.delivered.length > 0);
        assert.deepEqual([...first.warnings, ...second.warnings], []);
      });

      test(`${name}, ${how}: what is not settled in time is the new owner's, and its late settlement commits nothing`, async (t) => {
        const at = await testTopic(t, { numPartitions: 2 });
        const make = at && (await open(t, at, 300));
        if (at === undefined || make === undefined) return;
        await fill(at, 0, 3);
        const first = await drive(t, make());
        const held = await first.take(6);
        const second = await drive(t, make());
        const again = await second.take(3);
        const mine = partitionsOf(second.source);
        assert.equal(mine.length, 1);
        assert.deepEqual(
          again.map(idOf),
          [0, 1, 2].map((i) => `${mine[0]}-${i}`),
        );
        // Neither the commits nor the redeliveries of the first one touch what it has lost.
        await first.source.settle(held.map((delivery) => [delivery, ack]));
        await fill(at, 3, 4);
        const other = 1 - mine[0]!;
        first.ackAll();
        await assertCommitted(at, 4, other);
        assert.ok((await at.committed(mine[0])) <= 0);
        second.ackAll();
        await assertCommitted(at, 4, mine[0]);
      });

      test(`${name}, ${how}: a member that leaves hands its partitions on with their offsets committed`, async (t) => {
        const at = await testTopic(t, { numPartitions: 2 });
        const make = at && (await open(t, at, 5_000));
        if (at === undefined || make === undefined) return;
        const first = await drive(t, make());
        const second = await drive(t, make());
        await eventually(
          (): string => [partitionsOf(first.source).length, partitionsOf(second.source).length].join(),
          (counts) => counts === "1,1",
        );
        await fill(at, 0, 3);
        const [, b, c] = await first.take(3);
        await first.source.settle([
          [b!, ack],
          [c!, ack],
        ]);
        second.ackAll();
        await first.source.stop();
        await first.source.close();
        await eventually(
          () => second.delivered.length,
          (count) => count === 6,
        );
        for (const partition of [0, 1]) {
          await assertCommitted(at, 3, partition);
        }
        assert.equal(
          second.delivered.length,
          6,
          "the unsettled first one, and what cannot be told to be settled behind it",
        );
      });
    }
  }
});
