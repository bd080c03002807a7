import assert from "node:assert/strict";
import { test } from "node:test";
import { gate, message, recordEffect, testInbox } from "../inbox/support.ts";
import { effectsInOrder, listSource, pendingStates, until } from "./support.ts";

const keyed = (id: string) => message(id, { key: id.slice(0, 1) });

test("while another process holds the claim of a message, those behind it in its key wait and others do not", async (t) => {
  const { inboxWith, pool } = await testInbox(t, { claimLockTimeoutMs: 20, lanes: 1 });
  const begun = gate();
  const fail = gate();
  const elsewhere = inboxWith({}).process(keyed("a1"), async () => {
    begun.open();
    await fail.opened;
    throw new Error("it fails there");
  });
  await begun.opened;
  for (const maxBatch of [500, 1]) {
    const ids = maxBatch === 1 ? ["a1", "a5", "c1", "a6"] : ["a1", "b1", "a2", "b2", "a3", "a4"];
    const source = listSource(ids.map(keyed));
    const run = inboxWith({ maxBatch }).run(source, recordEffect);
    if (maxBatch === 500) {
      await until(pool, "(select count(*) from effect) = 2");
      // Given back in order at a stop, as never begun.
      await run.stop();
      assert.deepEqual(
        source.settlements.filter(([, { kind }]) => kind === "release").map(([id]) => id),
        ["a1", "a2", "a3", "a4"],
      );
      continue;
    }
    await until(pool, "exists (select from effect where message_id = 'c1')");
    fail.open();
    await elsewhere;
    await run.finished;
  }
  assert.deepEqual(await effectsInOrder(pool), ["b1", "b2", "c1", "a1", "a5", "a6"]);
  assert.deepEqual(await pendingStates(pool), {});
});

test("block: a stop gives back the message that its lane waits with, and those behind it", async (t) => {
  const { inbox, pool } = await testInbox(t, { order: "block", lanes: 1, retry: { delayMs: 60_000 } });
  const source = listSource(["a1", "a2", "b1"].map(keyed));
  let failures = 0;
  const run = inbox.run(source, async (received, context) => {
    if (received.id === "a1") {
      failures++;
      throw new Error("no");
    }
    await recordEffect(received, context);
  });
  await until(pool, "exists (select from attempt)");
  await run.stop();
  assert.ok(failures <= 2);
  const given = source.settlements.filter(([, { kind }]) => kind === "release").map(([id]) => id);
  assert.deepEqual(given.slice(0, 2), ["a1", "a2"]);
  assert.deepEqual(await pendingStates(pool), {});
  assert.equal(source.settlements.length, 3);
});

test("block: a pending message waits in its lane, and a stop leaves it and its followers where they are", async (t) => {
  const { inbox, pool } = await testInbox(t, { order: "block", lanes: 1, retry: { delayMs: 60_000 } });
  await inbox.accept(["a1", "a2"].map(keyed));
  const worker = inbox.work(() => Promise.reject(new Error("no")));
  await until(pool, "exists (select from attempt)");
  await worker.stop();
  assert.deepEqual(await pendingStates(pool), { a1: "ready", a2: "ready" });
  const { rows } = await pool.query("select * from pending_lane where leased_until is not null");
  assert.deepEqual(rows, [], "the lane is given back");
  await inbox.work(recordEffect, { untilDrained: true }).finished;
  assert.deepEqual(await effectsInOrder(pool), ["a1", "a2"]);
});
