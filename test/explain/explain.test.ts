import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { createInbox } from "../../src/inbox/create-inbox.ts";
import { explain, type Explanation } from "../../src/explain/explain.ts";
import { createQuarantine } from "../../src/quarantine/quarantine.ts";
import type { Store } from "../../src/store/store.ts";
import { ann, consumer, entryId, put, storedMessage, testStore } from "../quarantine/support.ts";

const name = { consumer, handlerVersion: "3" };

async function one(store: Store, id: string): Promise<Explanation> {
  const [explanation, ...others] = await explain(store, { id, consumer, producer: "shop" });
  assert.deepEqual(others, []);
  assert.ok(explanation);
  return explanation;
}

const shop = (id: string) => ({ producer: "shop", id, payload: `{"id":"${id}"}` });

test("tells of an applied message when, by which handler, and with which payload", async (t) => {
  const { store } = await testStore(t);
  const inbox = createInbox({ store, consumer, handlerVersion: "3" });
  await inbox.process(shop("m1"), () => undefined);
  const applied = await one(store, "m1");
  assert.deepEqual(
    [applied.state, applied.ledger?.handlerVersion, applied.ledger?.fingerprintMode, applied.attemptCount],
    ["applied", "3", "b", 0],
  );
  assert.ok(applied.ledger!.processedAt! <= applied.at);
  assert.equal(applied.firstSeenAt?.getTime(), applied.ledger!.processedAt!.getTime());
  assert.deepEqual([applied.waitsFor, applied.nextAttemptAt, applied.forgottenAt], Array(3).fill(undefined));
});

test("tells before when an applied message's identity is not forgotten: by its producer's window, or its consumer's", async (t) => {
  const { store } = await testStore(t);
  await createInbox({ store, consumer }).process(shop("m1"), () => undefined);
  for (const producer of [undefined, "shop", undefined]) {
    const windowMs = producer === undefined ? 86_400_000 : 3_600_000;
    await store.retention.setWindow({ consumer, producer }, windowMs);
    const { forgottenAt, ledger } = await one(store, "m1");
    // The producer's own stays when its consumer's is set again.
    const own = (await store.retention.list(consumer)).some((row) => row.producer === "shop");
    assert.equal(forgottenAt!.getTime() - ledger!.processedAt!.getTime(), own ? 3_600_000 : windowMs);
  }
});

test("tells of a failed message each attempt, and of an unknown one that nothing is known", async (t) => {
  const { store } = await testStore(t);
  const inbox = createInbox({ store, consumer });
  const failing = (): never => {
    throw new Error("no account");
  };
  await inbox.process(shop("m1"), failing);
  await inbox.process(shop("m1"), failing);
  const failed = await one(store, "m1");
  assert.deepEqual([failed.state, failed.attemptCount], ["failed", 2]);
  assert.deepEqual(
    failed.attempts.map(({ code, error }) => [code, error]),
    Array(2).fill(["handler-failed", "Error: no account"]),
  );
  assert.ok(failed.attempts[0]!.at <= failed.attempts[1]!.at);
  assert.equal((await one(store, "nobody")).state, "unknown");
  assert.deepEqual(await explain(store, { id: "nobody" }), []);
});

test("follows a message through quarantine: open, discarded, purged", async (t) => {
  const { store } = await testStore(t);
  const quarantine = createQuarantine({ store });
  await put(store, "m1");
  const id = await entryId(store, "m1");
  const open = await one(store, "m1");
  assert.deepEqual([open.state, open.openEntries], ["quarantined", [id]]);
  await quarantine.discard(id, ann);
  const discarded = await one(store, "m1");
  assert.deepEqual([discarded.state, discarded.openEntries], ["discarded", []]);
  assert.equal(discarded.quarantined[0]?.decision?.why, ann.why);
  await quarantine.purge({ decidedBeforeMs: 0 }, ann);
  assert.equal((await one(store, "m1")).state, "kept");
});

test("an applied message with a conflict is applied, and its entry is open", async (t) => {
  const { store } = await testStore(t);
  const inbox = createInbox({ store, consumer });
  await inbox.process(shop("m1"), () => undefined);
  await inbox.process({ ...shop("m1"), payload: "another" }, () => undefined);
  const both = await one(store, "m1");
  assert.deepEqual([both.state, both.openEntries.length], ["applied", 1]);
  assert.equal(both.quarantined[0]?.code, "payload-conflict");
});

test("tells what a pending message waits for: a worker, a lane's lease, the time, its key, a decision", async (t) => {
  const { store, pool } = await testStore(t);
  await store.pending.openLanes(consumer);
  await store.pending.accept(name, 100, [storedMessage("free")]);
  assert.deepEqual(
    [(await one(store, "free")).state, (await one(store, "free")).waitsFor],
    ["pending", "worker"],
  );

  const workerId = randomUUID();
  const request = { leaseMs: 60_000, maxLanes: 64, maxMessages: 100, maxBytes: 1e9, done: [] };
  await store.pending.take(consumer, { ...request, workerId });
  const leased = await one(store, "free");
  assert.deepEqual([leased.waitsFor, leased.pending?.lease?.workerId], ["lane", workerId]);
  await pool.query(
    "update pending_lane set leased_until = now() - interval '1 s' where leased_until is not null",
  );
  const lost = await one(store, "free");
  assert.deepEqual([lost.waitsFor, lost.pending?.lease?.expired], ["worker", true]);

  const keyed = (id: string) => storedMessage(id, { key: "account-7" });
  await store.pending.putOff(name, {
    message: keyed("head"),
    pending: undefined,
    ...{ code: "handler-failed", error: "no account", counts: true, park: true },
    delayAfter: () => 3_600_000,
  });
  const tx = await store.begin(name, {
    ...{
      isolation: "read committed",
      claimLockTimeoutMs: 100,
      workLockTimeoutMs: undefined,
      connectTimeoutMs: 5_000,
    },
  });
  await tx.claim([keyed("second"), keyed("third")]);
  assert.deepEqual([...(await tx.parkedKeys(["account-7"]))], ["account-7"]);
  await tx.storeBehind([keyed("second"), keyed("third")]);
  await tx.commit();
  const head = await one(store, "head");
  assert.deepEqual([head.waitsFor, head.attemptCount], ["schedule", 1]);
  assert.equal(head.nextAttemptAt?.getTime(), head.pending?.dueAt?.getTime());
  const third = await one(store, "third");
  assert.deepEqual(
    [third.waitsFor, third.pending?.parked?.head?.id, third.pending?.before, third.nextAttemptAt],
    ["key", "head", 2, undefined],
  );

  await pool.query("delete from pending where message_id = 'head'");
  await put(store, "head", { key: "account-7", blocking: true, payload: '{"id":"head"}' });
  const behind = await one(store, "third");
  const id = await entryId(store, "head");
  assert.deepEqual([behind.waitsFor, behind.pending?.parked?.entryId], ["decision", id]);
});

test("tells of workers that began a message, and whether they live", async (t) => {
  const { store, pool } = await testStore(t);
  const [alive, dead] = [randomUUID(), randomUUID()];
  const { digest } = storedMessage("m1");
  for (const workerId of [alive, dead]) {
    await store.workers.open(consumer, workerId, 60_000);
    await store.workers.markStarted(workerId, digest);
  }
  await pool.query("update worker set lease_until = now() - interval '1 s' where id = $1", [dead]);
  assert.deepEqual(
    (await one(store, "m1")).started.map(({ workerId, running }) => [workerId, running]),
    [
      [alive, true],
      [dead, false],
    ],
  );
});

test("an id alone finds every consumer's and producer's message of that id", async (t) => {
  const { store } = await testStore(t);
  const inbox = (own: string) => createInbox({ store, consumer: own });
  await inbox("accounting").process(shop("m1"), () => undefined);
  await inbox("shipping").process(shop("m1"), () => undefined);
  await inbox("shipping").process({ ...shop("m1"), producer: "web", tenant: "t" }, () => undefined);
  const whose = async (more: object): Promise<string[]> =>
    (await explain(store, { id: "m1", ...more })).map(({ consumer: own, producer }) => `${own} ${producer}`);
  assert.deepEqual(await whose({}), ["accounting shop", "shipping shop", "shipping web"]);
  assert.deepEqual(await whose({ consumer: "shipping" }), ["shipping shop", "shipping web"]);
  assert.deepEqual(await whose({ producer: "shop" }), ["accounting shop", "shipping shop"]);
  assert.deepEqual(await whose({ tenant: "t" }), ["shipping web"]);
});

test("tells of a record by its place whether its log's cursor is past it, with and without consumer and producer", async (t) => {
  const { store, pool, schema } = await testStore(t);
  const ask = { cluster: undefined, incarnation: "topic-id", part: "3", begin: 0n, accept: [] };
  await store.logs.takeCursor(consumer, "kafka:shop/3", ask);
  await store.logs.takeCursor(consumer, "kafka:shop/13", { ...ask, part: "13" });
  await pool.query(`update ${schema}.log_owner set applied = 41 where log = 'kafka:shop/3'`);
  const passed = await one(store, "topic-id/3/41");
  assert.deepEqual(
    [passed.state, passed.log],
    ["passed", { log: "kafka:shop/3", applied: "41", passed: true }],
  );
  const coming = await one(store, "topic-id/3/42");
  assert.deepEqual([coming.state, coming.log?.passed], ["unknown", false]);
  for (const id of ["topic-id/4/1", "other-id/3/1", "topic-id/3/x", "topic-id/3/99999999999999999999"])
    assert.deepEqual([(await one(store, id)).state, (await one(store, id)).log], ["unknown", undefined], id);
  assert.deepEqual(
    (await explain(store, { id: "topic-id/3/7" })).map((found) => [
      found.consumer,
      found.producer,
      found.state,
    ]),
    [[consumer, "shop", "passed"]],
  );
  assert.deepEqual(await explain(store, { id: "topic-id/3/7", producer: "other" }), []);
});
