import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { crashTest } from "./support.ts";

describe("dying around a quarantine entry", { concurrency: 3 }, () => {
  test("a message that fails for good is kept once when the process dies between rollback and the attempt's record", async (t) => {
    const { publish, start, broker, effects, attempts, quarantined } = await crashTest(t);
    publish([{ id: "m1", amount: 1, fail: "permanent" }]);
    await start({ die: { at: "attempt", by: "SIGKILL" } }).killed();
    assert.deepEqual(await attempts(), {});
    const second = start();
    await broker.drained();
    assert.deepEqual(second.outcomes, ["m1: rejected"]);
    assert.deepEqual(await effects(), {});
    assert.deepEqual(await attempts(), { m1: 1 }, "the attempt that nobody recorded does not count");
    assert.deepEqual(await quarantined(), ["m1: handler-rejected, 1, 1"]);
  });

  test("a message that fails for good is kept once when the process dies between the attempt's record and quarantine", async (t) => {
    const { publish, start, broker, effects, attempts, quarantined } = await crashTest(t);
    publish([{ id: "m1", amount: 1, fail: "permanent" }]);
    await start({ die: { at: "quarantine", by: "SIGKILL" } }).killed();
    assert.deepEqual(await attempts(), { m1: 1 });
    assert.deepEqual(await quarantined(), []);
    const second = start();
    await broker.drained();
    assert.deepEqual(second.outcomes, ["m1: rejected"]);
    assert.deepEqual(await effects(), {});
    assert.deepEqual(await attempts(), { m1: 2 }, "it was run twice, and both failed");
    assert.deepEqual(await quarantined(), ["m1: handler-rejected, 2, 1"]);
  });

  test("a message that fails for good is kept once when the process dies between quarantine and ack", async (t) => {
    const { publish, start, broker, effects, attempts, quarantined } = await crashTest(t);
    publish([{ id: "m1", amount: 1, fail: "permanent" }]);
    await start({ die: { at: "outcome", by: "SIGKILL" } }).killed();
    assert.deepEqual(await quarantined(), ["m1: handler-rejected, 1, 1"]);
    const second = start();
    await broker.drained();
    assert.deepEqual(second.outcomes, ["m1: stored"]);
    assert.deepEqual(await effects(), {});
    assert.deepEqual(await attempts(), { m1: 1 });
    assert.deepEqual(await quarantined(), ["m1: handler-rejected, 1, 1"]);
  });

  for (const [at, between] of [
    ["quarantine", "rollback and quarantine"],
    ["outcome", "quarantine and ack"],
  ] as const) {
    test(`the second body of an identity is kept once when the process dies between ${between}`, async (t) => {
      const { publish, start, broker, effects, balance, quarantined, attempts } = await crashTest(t);
      publish([{ id: "m1", amount: 1 }]);
      const first = start();
      await broker.drained();
      first.child.kill("SIGKILL");
      await first.killed();

      publish([{ id: "m1", amount: 100 }]);
      await start({ die: { at, by: "SIGKILL" } }).killed();
      const second = start();
      await broker.drained();
      assert.deepEqual(second.outcomes, ["m1: conflict"]);
      assert.deepEqual(await effects(), { m1: 1 });
      assert.equal(await balance(), 1);
      assert.deepEqual(await attempts(), {});
      assert.deepEqual(await quarantined(), [`m1: payload-conflict, 0, ${at === "outcome" ? 2 : 1}`]);
    });

    test(`a message without an id is never lost when the process dies between ${between}`, async (t) => {
      const { publish, start, broker, quarantined } = await crashTest(t);
      publish([{ amount: 1 }]);
      await start({ die: { at, by: "SIGKILL" } }).killed();
      const second = start();
      await broker.drained();
      assert.deepEqual(second.outcomes, ["undefined: rejected"]);
      // Nothing tells its redelivery from another message, so each delivery that was kept is an entry.
      const entry = "none: no-identity, 0, 1";
      assert.deepEqual(await quarantined(), at === "outcome" ? [entry, entry] : [entry]);
    });
  }

  test("an attempt that was recorded counts though the process dies before the source is told, and the next one is made", async (t) => {
    const { publish, start, broker, effects, attempts, until } = await crashTest(t);
    publish([{ id: "m1", amount: 1, fail: "once" }]);
    await start({ die: { at: "outcome", by: "SIGKILL" } }).killed();
    assert.deepEqual(await attempts(), { m1: 1 });
    const second = start();
    await broker.drained();
    await until("exists (select from effect)");
    // The redelivery is acknowledged, as its body is in pending, from where it is run again: there it fails once more.
    const outcomes = ["m1: stored", "m1: stored", "m1: applied"];
    while (second.outcomes.length < 3) await once(second.child, "message");
    assert.deepEqual([...second.outcomes].sort(), outcomes.sort());
    assert.deepEqual(await effects(), { m1: 1 });
    assert.deepEqual(await attempts(), { m1: 2 });
  });
});
