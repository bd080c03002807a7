import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { LocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { ownServer } from "../support/postgres.ts";
import { forms, points, type Point } from "./plan.ts";
import { crashTest } from "./support.ts";

const wasNotCommitted: readonly Point[] = ["begun", "claimed", "handler", "handled"];

describe("when the PostgreSQL server is killed", () => {
  const hooks: (() => Promise<void> | void)[] = [];
  let server: LocalPostgres;
  before(async () => {
    server = await ownServer({ after: (hook) => void hooks.push(hook) });
  });
  after(async () => {
    for (const hook of hooks) await hook();
  });

  for (const [index, point] of points.entries()) {
    const form = forms[index % forms.length]!;
    test(`point "${point}", form ${form}: the consumer waits, the server recovers, and the effect is there once`, async (t) => {
      const { publish, start, broker, effects, balance, attempts } = await crashTest(t, { server });
      publish([{ id: "m1", amount: 7 }]);
      const consumer = start({ form, die: { at: point, by: server.pid } });
      await consumer.serverKilled();
      await server.restart();
      await broker.drained();

      assert.deepEqual(await effects(), { m1: 1 });
      assert.equal(await balance(), 7);
      assert.deepEqual(await attempts(), {}, "a server that dies is no failed attempt");
      if (wasNotCommitted.includes(point)) assert.deepEqual(consumer.outcomes, ["m1: applied"]);
      assert.equal(broker.counts().deliveries, 1, "the consumer kept the message while it waited");

      publish([{ id: "m1", amount: 7 }], { redelivered: true });
      const second = start({ form });
      await broker.drained();
      assert.deepEqual([...consumer.outcomes, ...second.outcomes].at(-1), "m1: duplicate");
      assert.deepEqual(await effects(), { m1: 1 });
      assert.equal(await balance(), 7);
    });
  }

  for (const at of ["attempt", "quarantine"] as const) {
    test(`a message that fails for good is kept though the server dies before the ${at} is written`, async (t) => {
      const { publish, start, broker, effects, attempts, quarantined } = await crashTest(t, { server });
      publish([{ id: "m1", amount: 7, fail: "permanent" }]);
      const consumer = start({ die: { at, by: server.pid } });
      await consumer.serverKilled();
      await server.restart();
      await broker.drained();
      assert.deepEqual(await effects(), {});
      assert.deepEqual(
        await attempts(),
        { m1: 1 },
        "what was not written is written when the server is back",
      );
      assert.deepEqual(await quarantined(), ["m1: handler-rejected, 1, 1"]);
      assert.deepEqual(consumer.outcomes.slice(-1), ["m1: rejected"]);
    });
  }

  test("many messages are applied once each when the server dies under four lanes, again and again", async (t) => {
    const { publish, start, broker, effects, attempts, quarantined } = await crashTest(t, { server });
    const bodies = Array.from({ length: 200 }, (_, i) => ({ id: `m${i}`, key: `k${i % 7}`, amount: 1 }));
    publish(bodies);
    for (const at of ["claimed", "handled", "commit sent"] as const) {
      const consumer = start({ die: { at, by: server.pid } });
      await consumer.serverKilled();
      consumer.child.kill("SIGKILL");
      await server.restart();
    }
    start();
    await broker.drained();
    assert.deepEqual(await effects(), Object.fromEntries(bodies.map(({ id }) => [id, 1])));
    assert.deepEqual(await attempts(), {});
    assert.deepEqual(await quarantined(), []);
  });
});
