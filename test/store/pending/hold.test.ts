import assert from "node:assert/strict";
import { test } from "node:test";
import { entryOf, failed, idsOf, keyed, leasesOf, name, stored, testStore } from "../support.ts";

const lockTimeoutMs = 5_000;

test("hold and finish are the claim: the row is gone and the identity processed with the commit, not before", async (t) => {
  const { store, take, begin, rows } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, [stored("m1")]);
  const { messages } = await take();
  const tx = await begin();
  assert.deepEqual(await tx.hold(messages), new Set());
  await tx.finish(messages);
  assert.equal((await rows("select from pending")).length, 1);
  assert.deepEqual(await rows("select processed_at from message"), [{ processed_at: null }]);
  await tx.commit();
  assert.deepEqual(await rows("select from pending"), []);
  const [row] = await rows<{ processed_at: Date | null }>("select processed_at from message");
  assert.ok(row?.processed_at);
});

test("a rollback leaves the message in pending, for the same lease", async (t) => {
  const { store, take, begin, handle } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, [stored("m1")]);
  const { messages } = await take();
  const tx = await begin();
  await tx.hold(messages);
  await tx.finish(messages);
  await tx.rollback();
  assert.deepEqual(await handle(messages), ["m1"]);
  assert.deepEqual(await handle(messages), [], "handled before");
});

test("a stale token holds nothing, writes nothing, and says so", async (t) => {
  const { store, take, begin, expireLeases, rows, handle } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "a2"));
  const zombie = (await take()).messages;
  await expireLeases();
  const before = await rows("select * from pending order by position");
  const check = async (): Promise<void> => {
    const tx = await begin();
    assert.deepEqual(await tx.hold(zombie), new Set(zombie.map(({ digest }) => digest)));
    await assert.rejects(
      tx.finish(zombie.map((message) => ({ ...message, digest: stored("x").digest }))),
      /Of 2 pending/,
    );
    await tx.rollback();
    assert.deepEqual(await store.pending.putOff(name, failed(zombie[0]!)), { kind: "gone" });
    assert.equal(await store.quarantine(name, entryOf(zombie[0]!)), "gone");
  };
  // Out of its time, and nobody has taken the lane yet.
  await check();
  const heir = (await take()).messages;
  assert.deepEqual(idsOf(heir), ["a1", "a2"]);
  // Taken by another worker meanwhile.
  await check();
  assert.deepEqual(await rows("select * from pending order by position"), before);
  assert.deepEqual(
    await rows("select from attempt union all select from quarantine union all select from parked_key"),
    [],
  );
  assert.deepEqual(await handle(heir), ["a1", "a2"]);
});

test("finish fails, and with it the transaction, unless all rows and identities are as they were", async (t) => {
  const { store, take, begin, rows, pool } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, [stored("m1"), stored("m2")]);
  const { messages } = await take();
  await pool.query("update message set processed_at = now() where message_id = 'm2'");
  const tx = await begin();
  await tx.hold(messages);
  await assert.rejects(tx.finish(messages), /Of 2 pending messages 1 could be marked/);
  await assert.rejects(tx.commit(), { code: "commit-refused" });
  assert.equal((await rows("select from pending")).length, 2);
});

test("a worker that was stopped inside its transaction commits when it wakes; its heir waits for it and does not repeat", async (t) => {
  const { store, take, begin, expireLeases, untilBlocked, handle } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "a2"));
  const zombie = (await take()).messages;
  const asleep = await begin();
  assert.equal((await asleep.hold(zombie.slice(0, 1))).size, 0);
  await expireLeases();
  const heir = (await take()).messages;
  assert.deepEqual(idsOf(heir), ["a1", "a2"]);
  const handling = handle(heir);
  await untilBlocked();
  await asleep.finish(zombie.slice(0, 1));
  await asleep.commit();
  assert.deepEqual(await handling, ["a2"], "a2 only behind a1, and a1 once");
});

test("followers of a row that is locked are not overtaken: the hold gives up after its time instead", async (t) => {
  const { store, take, begin, expireLeases, rows } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "a2"));
  const zombie = (await take()).messages;
  const asleep = await begin();
  await asleep.hold(zombie.slice(0, 1));
  await expireLeases();
  const heir = (await take()).messages;
  const tx = await begin({ claimLockTimeoutMs: 20 });
  await assert.rejects(tx.hold(heir), { code: "55P03" });
  await tx.rollback();
  await asleep.rollback();
  assert.equal((await rows("select from pending")).length, 2);
});

test("a lease can be renewed, and its lane taken over, while a transaction stands on it", async (t) => {
  const { store, take, begin, expireLeases } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1"));
  const { messages } = await take();
  const tx = await begin();
  await tx.hold(messages);
  assert.equal((await store.pending.renew(name.consumer, leasesOf(messages), 1_000)).length, 1);
  await expireLeases();
  assert.equal((await take()).messages.length, 1);
  await tx.rollback();
});

test("the lock timeout of the hold ends with it", async (t) => {
  const { store, take, begin } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1"));
  const { messages } = await take();
  const tx = await begin({ claimLockTimeoutMs: 1_234 });
  await tx.hold(messages);
  const { rows } = await tx.query<{ lock_timeout: string }>({ text: "show lock_timeout" });
  assert.deepEqual(rows, [{ lock_timeout: "0" }]);
  await tx.rollback();
});
