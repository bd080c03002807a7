import assert from "node:assert/strict";
import test from "node:test";
import type { ClientEvents } from "../../../src/sources/kafka/client.ts";
import { createKafkajsBatches, type KafkajsBatches } from "../../../src/sources/kafka/kafkajs-batches.ts";
import { createKafkajsMembership } from "../../../src/sources/kafka/kafkajs-membership.ts";
import type {
  KafkajsAdmin,
  KafkajsBatchPayload,
  KafkajsConsumer,
} from "../../../src/sources/kafka/kafkajs-shapes.ts";
import { createKafkajsWatermarks } from "../../../src/sources/kafka/kafkajs-watermarks.ts";

// What may come from kafkajs around a rebalance, and where the position may go then. kafkajs is played by hand here: on a
// broker such batches come too seldom.

interface Played {
  readonly batches: KafkajsBatches;
  /** A new generation, which begins at the committed offset. */
  join(): Promise<void>;
  /** A batch that was fetched from `from`, with records at these offsets and its end at `last`. */
  batch(from: number, offsets: readonly number[], last?: number): Promise<void>;
  /** A batch without a record; `first`: the first mark in it. */
  filtered(first: number | null, last: number): void;
  /** Offsets that were handed over. */
  readonly read: readonly number[];
  /** How far the log was said to be read. */
  readonly readTo: readonly number[];
  /** Where kafkajs was told to read. */
  readonly sought: readonly number[];
  readonly warnings: readonly string[];
  /** The source has no room from now on, until what is returned is called. */
  fill(): () => void;
}

const topic = "payments";
const nothing = (): void => undefined;

function play(committed: number, watermarks = { low: "0", high: "1000" }): Played {
  const read: number[] = [];
  const readTo: number[] = [];
  const sought: number[] = [];
  const warnings: string[] = [];
  let room: Promise<void> | undefined;
  const events: ClientEvents = {
    assigned: async (partitions) => partitions,
    revoked: () => Promise.resolve(),
    lost: nothing,
    async records(records) {
      read.push(...records.map(({ offset }) => Number(offset)));
      await room;
    },
    readTo: ({ offset }) => void readTo.push(Number(offset)),
    alive: nothing,
    warn: (text) => void warnings.push(text),
    failed: (error) => {
      throw error;
    },
  };
  const consumer = {
    seek: ({ offset }: { offset: string }) => void sought.push(Number(offset)),
    pause: nothing,
    resume: nothing,
  } as unknown as KafkajsConsumer;
  const admin = {
    fetchOffsets: async () => [{ topic, partitions: [{ partition: 0, offset: String(committed) }] }],
    fetchTopicOffsets: async () => [{ partition: 0, ...watermarks }],
  } as unknown as KafkajsAdmin;
  const asked = createKafkajsWatermarks(admin);
  const membership = createKafkajsMembership({
    ...{ groupId: "g", fromBeginning: true, consumer, admin, watermarks: asked, events },
    ...{ stopped: () => false, closing: () => false },
  });
  const batches = createKafkajsBatches({
    ...{ consumer, membership, watermarks: asked, events, heartbeatMs: 1_000, mostAtOnce: 2 },
    ...{ stopped: () => false, progress: nothing },
  });
  return {
    ...{ batches, read, readTo, sought, warnings },
    fill() {
      let free = nothing;
      room = new Promise((resolve) => (free = resolve));
      return () => free();
    },
    join: () => membership.joined({ [topic]: [0] }),
    batch: (from, offsets, last = offsets.at(-1)!) =>
      batches.take({
        batch: {
          ...{ topic, partition: 0, fetchedOffset: String(from) },
          messages: offsets.map((offset) => ({ offset: String(offset), key: null, value: null })),
          lastOffset: () => String(last),
        },
        ...{ resolveOffset: nothing, heartbeat: () => Promise.resolve() },
        ...{ isRunning: () => true, isStale: () => false },
        commitOffsetsIfNecessary: () => Promise.resolve(),
      } satisfies KafkajsBatchPayload),
    filtered: (first, last) =>
      batches.filtered({
        ...{ topic, partition: 0, batchSize: 0, lastOffset: String(last) },
        firstOffset: first === null ? null : String(first),
      }),
  };
}

test("a batch that was fetched before the rebalance is not taken, and reading is sent back to the committed offset", async () => {
  const played = play(40);
  await played.join();
  assert.deepEqual(played.sought, [40]);
  await played.batch(50, [50, 51]);
  assert.deepEqual([played.read, played.sought], [[], [40, 40]]);
  await played.batch(40, [40, 41, 42]);
  assert.deepEqual([played.read, played.readTo], [[40, 41, 42], [43]]);
  assert.deepEqual(played.warnings, []);
});

test("a filtered batch of before the rebalance moves the position past no record that is not read", async () => {
  const played = play(40);
  await played.join();
  played.filtered(50, 55);
  assert.deepEqual(played.readTo, []);
  // kafkajs itself goes on behind it.
  await played.batch(56, [56]);
  assert.deepEqual(played.read, []);
  await played.batch(40, [40, 41]);
  assert.deepEqual(played.read, [40, 41]);
});

test("a filtered batch moves the position where reading stands in it, whenever it was fetched", async () => {
  const played = play(40);
  await played.join();
  played.filtered(38, 39);
  assert.deepEqual(played.readTo, []);
  played.filtered(40, 44);
  played.filtered(43, 46);
  assert.deepEqual(played.readTo, [45, 47]);
  await played.batch(47, [47]);
  assert.deepEqual(played.read, [47]);
});

test("a batch of which compaction left nothing moves the position by the one offset it was asked for", async () => {
  const played = play(40);
  await played.join();
  played.filtered(null, 41);
  assert.deepEqual(played.readTo, []);
  played.filtered(null, 40);
  assert.deepEqual(played.readTo, [41]);
});

test("a gap before filtered batches is passed when it is found again each time it is read", async () => {
  const played = play(40);
  await played.join();
  for (let round = 0; round < 3; round++) {
    played.filtered(43, 44);
    played.filtered(45, 45);
    await played.batch(46, [46, 47]);
  }
  assert.deepEqual(played.sought, [40, 40, 40]);
  assert.deepEqual(played.readTo, [46, 48]);
  assert.deepEqual(played.read, [46, 47]);
});

test("an offset that the log has no more is passed with a warning, and one that it has never is", async () => {
  const gone = play(40, { low: "60", high: "90" });
  await gone.join();
  for (let round = 0; round < 3; round++) await gone.batch(60, [60]);
  assert.deepEqual([gone.read, gone.readTo], [[60], [60, 61]]);
  assert.match(gone.warnings.join(), /has no offset 40 any more \(60 to 90\)/);

  const there = play(40);
  await there.join();
  for (let round = 0; round < 10; round++) await there.batch(60, [60]);
  assert.deepEqual([there.read, there.readTo, there.warnings], [[], [], []]);
});

test("a log that is shorter than the committed offset is read from where kafkajs begins, without saying it was read to there", async () => {
  const played = play(40, { low: "0", high: "3" });
  await played.join();
  for (let round = 0; round < 3; round++) await played.batch(0, [0, 1]);
  assert.deepEqual([played.read, played.readTo], [[0, 1], [2]]);
  assert.match(played.warnings.join(), /has no offset 40 any more/);
});

test("what a rebalance cuts off of a batch is not handed over, and read again from the committed offset", async () => {
  const played = play(40);
  await played.join();
  const free = played.fill();
  const batch = played.batch(40, [40, 41, 42, 43, 44, 45]);
  await new Promise(setImmediate);
  assert.deepEqual(played.read, [40, 41]);
  await played.join();
  free();
  await batch;
  assert.deepEqual(played.read, [40, 41]);
  await played.batch(40, [40, 41, 42]);
  assert.deepEqual(played.read, [40, 41, 40, 41, 42]);
});

test("what the source rests is handed over no further, and goes on when it is wanted again", async () => {
  const played = play(0);
  await played.join();
  played.batches.pause({ topic, partition: 0 });
  await played.batch(0, [0, 1]);
  assert.deepEqual(played.read, []);
  played.batches.resume({ topic, partition: 0 });
  await played.batch(0, [0, 1]);
  assert.deepEqual(played.read, [0, 1]);
});
