import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import fc from "fast-check";
import { parseCheckpoint, type CheckpointStore } from "../../../src/sources/ndjson/checkpoint.ts";
import type { Delivery, Settlement } from "../../../src/sources/source.ts";
import { ack, ids, memoryStore, ownDirectory, work } from "./harness.ts";

const pad = "p".repeat(60);
const line = (id: number): string => `{"id":"${id}","pad":"${pad}"}\n`;

test("the position is saved at most once a second, and on close", async (t) => {
  const path = join(ownDirectory(t), "orders.ndjson");
  writeFileSync(path, Array.from({ length: 100 }, (_, i) => line(i)).join(""));
  const checkpoints = memoryStore();
  let clock = 0;
  // Ten batches, each 200 ms of this clock.
  const worked = await work(
    t,
    { from: path, checkpoints, maxBatch: 10, now: () => clock },
    () => ack,
    async () => {
      clock += 200;
    },
  );
  await worked.ended;
  await worked.close();
  // One before the first line is handed over, one a second later, and one on close.
  assert.equal(checkpoints.saved.length, 3);
  const last = parseCheckpoint(checkpoints.saved.at(-1)!)!;
  assert.deepEqual([last.offset, last.handedTo], [statSync(path).size, statSync(path).size]);
});

test("a saved text that is no checkpoint is passed over, with a word", async (t) => {
  const path = join(ownDirectory(t), "orders.ndjson");
  writeFileSync(path, line(1));
  for (const text of [
    "",
    "17",
    "null",
    "{}",
    '{"format":2,"offset":0}',
    '{"format":1,"offset":-1,"handedTo":0,"content":""}',
  ]) {
    const checkpoints: CheckpointStore = { load: async () => text, save: async () => undefined };
    const { deliveries, ended, notices } = await work(t, { from: path, checkpoints });
    await ended;
    assert.equal(deliveries.length, 1);
    assert.match(notices.join(), /cannot be read: starting at its beginning/);
  }
});

test("a store that fails to save is reported once and stops nothing", async (t) => {
  const path = join(ownDirectory(t), "orders.ndjson");
  writeFileSync(path, Array.from({ length: 50 }, (_, i) => line(i)).join(""));
  const checkpoints: CheckpointStore = {
    load: async () => undefined,
    save: async () => {
      throw new Error("the database is away");
    },
  };
  let clock = 0;
  const { deliveries, ended, notices, close } = await work(t, {
    from: path,
    checkpoints,
    maxBatch: 10,
    now: () => (clock += 5_000),
  });
  await ended;
  await close();
  assert.equal(deliveries.length, 50);
  assert.equal(notices.filter((text) => /cannot be saved: the database is away/.test(text)).length, 1);
});

test("after a crash at any point nothing is lost, and all that was handed over before is flagged", async (t) => {
  const path = join(ownDirectory(t), "orders.ndjson");
  // Past the first mebibyte, so that the limit on handing over is met while reading.
  const count = 30_000;
  const content = Array.from({ length: count }, (_, i) => line(i)).join("");
  assert.ok(content.length > 2 * 1024 * 1024);
  writeFileSync(path, content);

  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: count }),
      fc.integer({ min: 0, max: 2 ** 31 }),
      fc.integer({ min: 0, max: 100 }),
      fc.integer({ min: 0, max: 50 }),
      async (crashAfter, seed, ackPercent, msPerBatch) => {
        const checkpoints = memoryStore();
        const random = generator(seed);
        const acked = new Set<string>();
        const handed = new Set<string>();
        let crashed = false;
        let clock = 0;
        const lossy: CheckpointStore = {
          load: (key) => checkpoints.load(key),
          // A process that is dead saves nothing.
          save: async (key, value) => (crashed ? undefined : checkpoints.save(key, value)),
        };
        const first = await work(
          undefined,
          { from: path, checkpoints: lossy, maxUnsettled: 1_000_000, now: () => clock },
          (delivery: Delivery): Settlement | undefined => {
            if (crashed) return undefined;
            const [id] = ids([delivery.received]);
            handed.add(id!);
            crashed = handed.size >= crashAfter;
            if (crashed || random() * 100 >= ackPercent) return undefined;
            acked.add(id!);
            return ack;
          },
          async () => {
            clock += msPerBatch;
          },
        );
        await first.delivered(crashAfter);
        await first.close();

        const again = new Map<string, boolean>();
        const second = await work(undefined, { from: path, checkpoints }, (delivery) => {
          again.set(ids([delivery.received])[0]!, delivery.redelivered);
          return ack;
        });
        await second.ended;
        await second.close();
        for (let i = 0; i < count; i += 1) {
          const id = String(i);
          assert.ok(acked.has(id) || again.has(id), `${id} is lost`);
          if (handed.has(id) && again.has(id)) assert.equal(again.get(id), true, `${id} is not flagged`);
        }
      },
    ),
    { numRuns: 12 },
  );
});

function generator(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
