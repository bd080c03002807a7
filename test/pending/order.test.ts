import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageHandler } from "../../src/index.ts";
import { message, recordEffect, testInbox } from "../inbox/support.ts";
import { effectsInOrder, listSource, pendingStates, until } from "./support.ts";

/** Fails so many times for each of these messages, then does as `recordEffect`. */
function failing(times: Readonly<Record<string, number>>): MessageHandler {
  const left = new Map(Object.entries(times));
  return async (received, context) => {
    await recordEffect(received, context);
    const more = left.get(received.id) ?? 0;
    left.set(received.id, more - 1);
    if (more > 0) throw new Error(`${received.id} is not ready`);
  };
}

const keyed = (ids: readonly string[]) => ids.map((id) => message(id, { key: id.slice(0, 1) }));

test("park-key: later messages of a failed one's key follow it in order, other keys do not wait", async (t) => {
  const { inbox, pool } = await testInbox(t, { lanes: 2, retry: { delayMs: 100, jitter: 0 } });
  const source = listSource(keyed(["a1", "a2", "b1", "a3", "b2", "c1", "a4", "b3"]));
  const { outcomes, pending } = await inbox.run(source, failing({ a1: 2, a3: 1 })).finished;
  const order = await effectsInOrder(pool);
  for (const key of ["a", "b", "c"]) {
    const own = order.filter((id) => id.startsWith(key));
    assert.deepEqual(own, [...own].sort(), order.join(" "));
  }
  assert.equal(order.length, 8);
  assert.ok(order.indexOf("b3") < order.indexOf("a1"), order.join(" "));
  assert.deepEqual([outcomes.applied, outcomes.stored], [4, 4]);
  assert.deepEqual([pending.stored, pending.outcomes.applied], [4, 4]);
  assert.deepEqual(await pendingStates(pool), {});
  assert.ok(source.settlements.every(([, { kind }]) => kind === "ack"));
  // Whoever looks next finds the key free.
  await using _worker = inbox.work(recordEffect);
  await until(pool, "not exists (select from parked_key)");
});

test("park-key: after quarantine the key waits for the decision, and a run ends without it", async (t) => {
  const { inbox, pool, quarantined } = await testInbox(t, { retry: { delayMs: 1, maxAttempts: 2 } });
  const source = listSource(keyed(["a1", "a2", "b1", "a3"]));
  await inbox.run(source, failing({ a1: 9 })).finished;
  assert.deepEqual(await effectsInOrder(pool), ["b1"]);
  assert.deepEqual(await pendingStates(pool), { a2: "behind", a3: "behind" });
  assert.deepEqual(
    (await quarantined()).map(({ code, attempts }) => [code, attempts]),
    [["attempts-exhausted", 2]],
  );
  // What comes for the key meanwhile goes behind them, wherever it comes.
  assert.equal((await inbox.process(message("a4", { key: "a" }), recordEffect)).waitsFor, "key");
  assert.equal((await inbox.accept(message("a5", { key: "a" }))).waitsFor, "worker");
  await inbox.work(recordEffect, { untilDrained: true }).finished;
  assert.deepEqual(await effectsInOrder(pool), ["b1"]);
  assert.deepEqual(await pendingStates(pool), { a2: "behind", a3: "behind", a4: "behind", a5: "behind" });
});

test("block: the lane waits with the message, and nothing of its key goes to pending", async (t) => {
  const { inbox, pool } = await testInbox(t, { order: "block", retry: { delayMs: 20 } });
  const { outcomes } = await inbox.run(listSource(keyed(["a1", "a2", "b1", "a3"])), failing({ a1: 2, a3: 1 }))
    .finished;
  const order = await effectsInOrder(pool);
  assert.deepEqual(
    order.filter((id) => id !== "b1"),
    ["a1", "a2", "a3"],
  );
  assert.deepEqual([outcomes.applied, outcomes.stored], [4, 0]);
});

test("skip: a failed message lets the others of its key go on", async (t) => {
  const { inbox, pool } = await testInbox(t, { order: "skip", retry: { delayMs: 1_000, jitter: 0 } });
  await inbox.run(listSource(keyed(["a1", "a2", "a3"])), failing({ a1: 2 })).finished;
  assert.deepEqual(await effectsInOrder(pool), ["a2", "a3", "a1"]);
});

test("messages without a key wait for nobody", async (t) => {
  const { inbox, pool } = await testInbox(t, { retry: { delayMs: 1_000, jitter: 0 } });
  await inbox.run(listSource(["m1", "m2", "m3"].map((id) => message(id))), failing({ m1: 1 })).finished;
  const order = await effectsInOrder(pool);
  assert.deepEqual([order.at(-1), order.length], ["m1", 3]);
});
