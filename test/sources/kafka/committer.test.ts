import assert from "node:assert/strict";
import test from "node:test";
import type { Position } from "../../../src/sources/kafka/client.ts";
import { createCommitter } from "../../../src/sources/kafka/committer.ts";
import { createOwnedPartition, type OwnedPartition } from "../../../src/sources/kafka/owned-partition.ts";

interface Sent {
  readonly offsets: readonly bigint[];
  readonly answer: (error?: Error) => void;
}

/** A committer whose broker answers when the test says so, and a clock that the test moves. */
function scene(t: test.TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: Sent[] = [];
  const refused: string[] = [];
  const partitions: OwnedPartition[] = [];
  const committer = createCommitter({
    intervalMs: 100,
    owned: () => partitions,
    send: (positions: readonly Position[]) =>
      new Promise((resolve, reject) => {
        const answer = (error?: Error): void => (error === undefined ? resolve() : reject(error));
        sent.push({ offsets: positions.map(({ offset }) => offset), answer });
      }),
    refused: (error) => refused.push((error as Error).message),
  });
  const own = (partition: number): OwnedPartition => {
    const made = createOwnedPartition({ topic: "t", partition, start: 0n }, 0, undefined);
    partitions.push(made);
    return made;
  };
  const settleTo = (partition: OwnedPartition, offset: bigint): void => {
    const next = partition.log.next() ?? 0n;
    for (let at = next; at < offset; at++) partition.log.settle(partition.log.add(at, 1));
    committer.touch();
  };
  const after = async (ms: number): Promise<void> => {
    t.mock.timers.tick(ms);
    // Whatever was waiting for the clock has run when this turn is over.
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { committer, sent, refused, own, settleTo, after };
}

test("commits what is settled once an interval, and nothing that is committed already", async (t) => {
  const { sent, own, settleTo, after } = scene(t);
  const [a, b] = [own(0), own(1)];
  settleTo(a, 3n);
  settleTo(a, 5n);
  await after(100);
  assert.deepEqual(sent[0]!.offsets, [5n]);
  sent[0]!.answer();
  await after(0);
  assert.equal(a.committed, 5n);
  settleTo(b, 2n);
  await after(100);
  assert.deepEqual(sent[1]!.offsets, [2n]);
});

test("a refused commit is sent again with what is settled by then", async (t) => {
  const { sent, refused, own, settleTo, after } = scene(t);
  const a = own(0);
  settleTo(a, 3n);
  await after(100);
  settleTo(a, 4n);
  sent[0]!.answer(new Error("rebalance in progress"));
  await after(0);
  assert.equal(a.committed, 0n);
  await after(100);
  await after(100);
  assert.deepEqual(
    sent.map(({ offsets }) => offsets),
    [[3n], [4n]],
  );
  assert.deepEqual(refused, ["rebalance in progress"]);
});

test("a commit without an answer holds the next ones up for 10 s, and one that arrives late is made good", async (t) => {
  const { sent, refused, own, settleTo, after } = scene(t);
  const a = own(0);
  settleTo(a, 3n);
  await after(100);
  settleTo(a, 5n);
  await after(9_000);
  assert.equal(sent.length, 1, "an older position must not arrive after a newer one");
  await after(1_000);
  await after(100);
  assert.deepEqual(sent[1]!.offsets, [5n]);
  sent[1]!.answer();
  await after(0);
  assert.equal(a.committed, 5n);
  assert.match(refused[0]!, /did not answer within 10000 ms/);
  // The broker now has 3 where it had 5.
  sent[0]!.answer();
  await after(0);
  await after(100);
  assert.deepEqual(sent[2]!.offsets, [5n]);
});

test("nothing is committed of a partition that is gone, not even what waits for its turn", async (t) => {
  const { committer, sent, own, settleTo, after } = scene(t);
  const [a, b] = [own(0), own(1)];
  settleTo(a, 3n);
  await after(100);
  settleTo(b, 2n);
  const flushed = committer.flush([b], 1_000);
  b.state = "gone";
  sent[0]!.answer();
  await after(0);
  await flushed;
  assert.equal(sent.length, 1);
});

test("a flush takes no longer than it may", async (t) => {
  const { committer, sent, own, settleTo, after } = scene(t);
  const a = own(0);
  settleTo(a, 3n);
  let over = false;
  const flushed = committer.flush([a], 500).then(() => (over = true));
  await after(0);
  assert.equal(sent.length, 1);
  await after(499);
  assert.equal(over, false);
  await after(1);
  await flushed;
});
