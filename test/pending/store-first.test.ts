import assert from "node:assert/strict";
import { test } from "node:test";
import { PermanentError } from "../../src/index.ts";
import { gate, message, recordEffect, testInbox } from "../inbox/support.ts";
import { effectsInOrder, listSource, pendingStates, until } from "./support.ts";

test("accept stores, work handles in the order of acceptance within a key", async (t) => {
  const { inbox, pool } = await testInbox(t);
  const ids = Array.from({ length: 60 }, (_, i) => `m${String(i).padStart(2, "0")}`);
  const answers = await inbox.accept(ids.map((id, i) => message(id, { key: `k${i % 3}` })));
  assert.ok(
    answers.every(
      ({ outcome, settle, waitsFor }) => outcome === "stored" && settle === "ack" && waitsFor === "worker",
    ),
  );
  assert.equal(Object.keys(await pendingStates(pool)).length, 60);

  const again = await inbox.accept(message("m00", { key: "k0" }));
  assert.deepEqual([again.outcome, again.settle, again.waitsFor], ["stored", "ack", undefined]);
  const other = await inbox.accept(message("m00", { key: "k0", payload: "other" }));
  assert.deepEqual([other.outcome, other.settle], ["conflict", "ack"]);

  const { outcomes } = await inbox.work(recordEffect, { untilDrained: true }).finished;
  assert.equal(outcomes.applied, 60);
  const order = await effectsInOrder(pool);
  for (const rest of [0, 1, 2]) {
    const own = order.filter((id) => Number(id.slice(1)) % 3 === rest);
    assert.deepEqual(own, [...own].sort());
  }
  assert.deepEqual(await pendingStates(pool), {});
  assert.equal((await inbox.accept(message("m00", { key: "k0" }))).outcome, "duplicate");
  assert.equal((await inbox.process(message("m01"), recordEffect)).outcome, "duplicate");
});

test("a message that cannot be one is kept in quarantine by accept", async (t) => {
  const { inbox, quarantined } = await testInbox(t);
  const answer = await inbox.accept({ id: "", producer: "payments", payload: "x" });
  assert.deepEqual([answer.outcome, answer.settle], ["rejected", "ack"]);
  assert.equal((await quarantined()).length, 1);
});

test("body, headers, key, type and time come back to the handler as they were", async (t) => {
  const { inbox } = await testInbox(t);
  const given = {
    ...{ tenant: "t\u00e9", producer: "p", id: "\u{1F600} x", key: "k\"'\\", type: "paid" },
    time: new Date("2026-01-02T03:04:05.678Z"),
    headers: { a: "\ud800 \0", "": "{}" },
    payload: Uint8Array.from({ length: 256 }, (_, i) => i),
  };
  await inbox.accept([
    given,
    { ...given, id: "null", payload: null, headers: {}, key: undefined, time: undefined },
  ]);
  const seen = new Map<string, unknown>();
  await inbox.work(
    ({ tenant, producer, id, key, type, time, headers, bytes }) => {
      seen.set(id, {
        tenant,
        producer,
        id,
        key,
        type,
        time,
        headers: { ...headers },
        payload: bytes && new Uint8Array(bytes),
      });
    },
    { untilDrained: true },
  ).finished;
  assert.deepEqual(seen.get(given.id), given);
  assert.deepEqual(seen.get("null"), {
    ...given,
    id: "null",
    payload: null,
    headers: {},
    key: undefined,
    time: undefined,
  });
});

test("a run that stores first acknowledges before it handles, and ends when all is handled", async (t) => {
  const { inbox, pool } = await testInbox(t);
  const source = listSource(Array.from({ length: 300 }, (_, i) => message(`m${i}`, { key: `k${i % 11}` })));
  const begin = gate();
  const run = inbox.run(
    source,
    async (received, context) => {
      await begin.opened;
      await recordEffect(received, context);
    },
    { mode: "store-first" },
  );
  while (source.settlements.length < 300) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(await effectsInOrder(pool), []);
  begin.open();
  const { outcomes, pending } = await run.finished;
  assert.deepEqual([outcomes.stored, pending.stored, pending.outcomes.applied], [300, 300, 300]);
  assert.equal(new Set(await effectsInOrder(pool)).size, 300);
});

test("acceptFrom only stores; a worker that is there is woken and handles", async (t) => {
  const { inbox, pool } = await testInbox(t);
  const { outcomes } = await inbox.acceptFrom(listSource([message("m1"), message("m2")])).finished;
  assert.equal(outcomes.stored, 2);
  assert.deepEqual(await pendingStates(pool), { m1: "ready", m2: "ready" });
  await using worker = inbox.work(recordEffect);
  await until(pool, "not exists (select from pending)");
  await inbox.accept(message("m3"));
  await until(pool, "(select count(*) from effect) = 3");
  assert.equal(worker.stats().outcomes.applied, 3);
});

test("in a batch of 500 with 5 poison messages 495 take effect and 5 go to quarantine", async (t) => {
  const { inbox, pool, quarantined } = await testInbox(t, { retry: { delayMs: 1, maxAttempts: 2 } });
  const poison = new Set(["m17", "m99", "m250", "m251", "m499"]);
  // No message of the poison ones' keys comes behind them.
  await inbox.accept(
    Array.from({ length: 500 }, (_, i) =>
      message(`m${i}`, { key: poison.has(`m${i}`) ? `p${i}` : `k${i % 20}` }),
    ),
  );
  let permanent = 0;
  await inbox.work(
    async (received, context) => {
      await recordEffect(received, context);
      if (!poison.has(received.id)) return;
      if (permanent++ % 2 === 0) throw new PermanentError("never");
      throw new Error("not now");
    },
    { untilDrained: true },
  ).finished;
  const order = await effectsInOrder(pool);
  assert.equal(order.length, 495);
  assert.equal(new Set(order).size, 495);
  for (let k = 0; k < 20; k++) {
    const own = order.filter((id) => Number(id.slice(1)) % 20 === k).map((id) => Number(id.slice(1)));
    assert.deepEqual(
      own,
      [...own].sort((a, b) => a - b),
    );
  }
  assert.deepEqual(new Set((await quarantined()).map((row) => row.message_id)), poison);
});

test("stop finishes what is begun, and gives the rest back to other workers at once", async (t) => {
  const { inboxWith, pool } = await testInbox(t, { lanes: 1, maxBatch: 1 });
  await inboxWith({}).accept(Array.from({ length: 10 }, (_, i) => message(`m${i}`, { key: "k" })));
  const begun = gate();
  const finish = gate();
  const worker = inboxWith({}).work(
    async (received, context) => {
      begun.open();
      await finish.opened;
      await recordEffect(received, context);
    },
    { workerLeaseMs: 60_000 },
  );
  await begun.opened;
  const stopped = worker.stop();
  finish.open();
  await stopped;
  assert.deepEqual(await effectsInOrder(pool), ["m0"]);
  await inboxWith({}).work(recordEffect, { untilDrained: true }).finished;
  assert.deepEqual(
    await effectsInOrder(pool),
    Array.from({ length: 10 }, (_, i) => `m${i}`),
  );
});

test("acceptInTransaction stores with the caller's transaction, or not at all", async (t) => {
  const { inbox, pool } = await testInbox(t);
  const client = await pool.connect();
  try {
    await client.query("begin");
    const [one, copy, two] = await inbox.acceptInTransaction(client, [
      message("m1"),
      message("m1"),
      message("m2"),
    ]);
    assert.deepEqual([one?.outcome, copy?.outcome, two?.outcome], ["stored", "stored", "stored"]);
    await client.query("rollback");
    assert.deepEqual(await pendingStates(pool), {});
    await client.query("begin");
    assert.equal((await inbox.acceptInTransaction(client, message("m1"))).outcome, "stored");
    await client.query("commit");
    assert.deepEqual(await pendingStates(pool), { m1: "ready" });
    await client.query("begin");
    const twice = [message("m3"), message("m3", { payload: "other" })];
    await assert.rejects(inbox.acceptInTransaction(client, twice), { code: "payload-conflict" });
    await client.query("rollback");
    await assert.rejects(inbox.acceptInTransaction(pool, message("m4")), {
      code: "not-a-transaction",
      message: /acceptInTransaction needs an open transaction/,
    });
  } finally {
    client.release();
  }
  await inbox.work(recordEffect, { untilDrained: true }).finished;
  assert.deepEqual(await effectsInOrder(pool), ["m1"]);
});

test("a message of a parked key is stored behind it by processInTransaction too", async (t) => {
  const { inbox, pool } = await testInbox(t, { retry: { maxAttempts: 1 } });
  const source = listSource([message("a1", { key: "a" })]);
  await inbox.run(source, () => Promise.reject(new Error("no"))).finished;
  const client = await pool.connect();
  try {
    await client.query("begin");
    let ran = false;
    const { outcome } = await inbox.processInTransaction(
      client,
      message("a2", { key: "a" }),
      () => void (ran = true),
    );
    assert.deepEqual([outcome, ran], ["stored", false]);
    await client.query("commit");
  } finally {
    client.release();
  }
  assert.deepEqual(await pendingStates(pool), { a2: "behind" });
});

test("large messages come a few at a time: what a worker has in hand is bounded in bytes", async (t) => {
  const { inbox, pool } = await testInbox(t, { lanes: 1 });
  const megabytes = 12;
  const payload = Buffer.alloc(megabytes * 1024 * 1024, 1);
  for (let i = 0; i < 12; i++) await inbox.accept(message(`m${i}`, { payload }));
  const begin = gate();
  const worker = inbox.work(async (received, context) => {
    await begin.opened;
    await recordEffect(received, context);
  });
  // Taken until there is enough in hand; 64 MiB and no more.
  while (worker.stats().inHand * megabytes < 32) await new Promise((resolve) => setTimeout(resolve, 20));
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.ok(worker.stats().inHand * megabytes <= 64, `${worker.stats().inHand} in hand`);
  begin.open();
  await until(pool, "not exists (select from pending)");
  await worker.stop();
  assert.equal((await effectsInOrder(pool)).length, 12);
});
