import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { TakenEffect, Verdict } from "../../src/store/outbox.ts";
import { testOutbox } from "../outbox/support.ts";
import { effect } from "./support.ts";

const request = { relayId: randomUUID(), leaseMs: 60_000, maxLanes: 64, maxEffects: 10, maxBytes: 1e9 };

const verdict = (taken: TakenEffect, more: Partial<Verdict> = {}): Verdict => ({
  ...{ lease: taken.lease, position: taken.position, action: "remove", outcome: "sent", delayMs: 0 },
  ...{ counts: false, code: undefined, error: undefined, status: undefined, result: undefined, tookMs: 1 },
  ...more,
});

for (const [stale, more] of [
  ["sent", {}],
  ["failed", { action: "scheduled", outcome: "failed", delayMs: 60_000, code: "destination-failed" }],
] as const) {
  test(`a verdict of a lease that a relay lost counts for nothing (${stale}), also beside one of the lease it has now`, async (t) => {
    const { store, commit, outbox, pool } = await testOutbox(t);
    await store.outbox.openLanes(["there"]);
    await commit((client) => outbox.send(client, effect("e")));
    const [before] = (await store.outbox.take("there", request)).effects;
    await pool.query("update outbox_lane set leased_until = clock_timestamp() - interval '1 second'");
    const [now] = (await store.outbox.take("there", request)).effects;
    assert.equal(now!.position, before!.position);
    assert.notEqual(now!.lease.token, before!.lease.token);
    await store.outbox.settle(
      "there",
      request.relayId,
      [verdict(before!, more), verdict(now!)],
      [now!.lease],
    );
    const { rows } = await pool.query("select outcome from outbox_attempt");
    assert.deepEqual(rows, [{ outcome: "sent" }]);
    const { rows: left } = await pool.query("select effect_id from outbox");
    assert.deepEqual(left, []);
  });
}
