import assert from "node:assert/strict";
import { test } from "node:test";
import { stored, testStore } from "./support.ts";

test("a batch is claimed in the order of its digests, however it is given: two that overlap wait in no circle", async (t) => {
  const db = await testStore(t);
  const [first, second] = [stored("1"), stored("2")].sort((a, b) => (a.digest < b.digest ? -1 : 1)) as [
    ReturnType<typeof stored>,
    ReturnType<typeof stored>,
  ];
  const holder = await db.begin();
  await holder.claim([first]);
  const other = await db.begin();
  const waiting = other.claim([second, first]);
  await db.untilBlocked();
  // In the order it was given, the other one would hold this and be waited for.
  assert.deepEqual((await holder.claim([second])).notNew, []);
  await holder.commit();
  assert.deepEqual(
    (await waiting).notNew.map(({ digest, seen }) => [digest, seen?.processed]).sort(),
    [first.digest, second.digest].map((digest) => [digest, true]).sort(),
  );
  await other.rollback();
});
