import assert from "node:assert/strict";
import { test } from "node:test";
import type { InboxError } from "../../src/errors.ts";
import { createOutboxConsole } from "../../src/outbox/console.ts";
import { forgetEffects } from "../../src/outbox/forget.ts";
import { refused } from "../../src/relay/relay.ts";
import { effect, startRelay, until } from "../relay/support.ts";
import { testOutbox, type TestOutbox } from "./support.ts";

const day = 86_400_000;
const ann = { by: "ann", why: "it is known" };

/** Lets time go by for effects, as far as the tables know. */
async function age(place: TestOutbox, ids: readonly string[], days: number): Promise<void> {
  const interval = `${days} days`;
  await place.pool.query(
    `with d as (select digest from outbox_refusal where effect_id = any ($1) union
                select digest from outbox_attempt where effect_id = any ($1) union
                select digest from outbox where effect_id = any ($1)),
     a as (update outbox_attempt a set at = at - $2::interval from d where a.digest = d.digest),
     r as (update outbox_refusal r set decided_at = decided_at - $2::interval from d where r.digest = d.digest)
     update outbox_id f set recorded_at = recorded_at - $2::interval from d where f.digest = d.digest`,
    [ids, interval],
  );
}

test("what is settled and older than the window is forgotten whole; what waits never, and the same id is new then", async (t) => {
  const place = await testOutbox(t);
  const { store, outbox, commit, pool } = place;
  const desk = createOutboxConsole({ store });
  await startRelay(t, place, {
    there: (given) => (given.id.startsWith("bad") ? refused(new Error("no")) : undefined),
  });
  const ids = ["old", "young", "late", "bad-open", "bad-discarded", "waits"];
  await commit((client) =>
    outbox.sendAll(
      client,
      ids.map((id) => effect(id, { delayMs: id === "waits" ? 3_600_000 : 0 })),
    ),
  );
  const entries = await until(
    () => desk.list(),
    (rows) => rows.length === 2,
  );
  await desk.discard(entries.find(({ effectId }) => effectId === "bad-discarded")!.id, ann);
  await until(place.waiting, (waiting) => waiting.length === 2);
  await age(place, ["old", "bad-open", "bad-discarded", "waits", "late"], 100);
  // It was asked for long ago, and sent only now.
  await pool.query("update outbox_attempt set at = clock_timestamp() where effect_id = 'late'");

  const swept = await forgetEffects({ store, windowMs: 90 * day, dutyPercent: 100 });
  assert.deepEqual([swept.ended, swept.effects], ["done", 2]);
  const known = async (id: string) =>
    (await desk.effect({ destination: "there", producer: "orders", id }))?.outcome;
  assert.deepEqual(await Promise.all(ids.map(known)), [
    ...[undefined, "sent", "sent", "refused", undefined, "waiting"],
  ]);
  const left = await pool.query("select from outbox_attempt where effect_id in ('old', 'bad-discarded')");
  assert.equal(left.rowCount, 0);
  assert.equal((await desk.list({ status: "discarded" })).length, 0);
  // The decision stays.
  assert.equal((await desk.decisions()).length, 1);
  assert.equal((await forgetEffects({ store, windowMs: 90 * day, dutyPercent: 100 })).effects, 0);
  const [again, same] = await commit((client) => outbox.sendAll(client, [effect("old"), effect("young")]));
  assert.deepEqual([again!.fresh, same!.fresh], [true, false]);
});

test("bodies of decided refusals go before their history does", async (t) => {
  const place = await testOutbox(t);
  const { store, outbox, commit } = place;
  const desk = createOutboxConsole({ store });
  await startRelay(t, place, { there: () => refused(new Error("no")) });
  await commit((client) => outbox.sendAll(client, [effect("bad1"), effect("bad2")]));
  const [second, first] = await until(
    () => desk.list(),
    (rows) => rows.length === 2,
  );
  await desk.discard(first!.id, ann);
  await desk.discard(second!.id, ann);
  await age(place, [first!.effectId], 40);
  const swept = await forgetEffects({
    store,
    windowMs: 90 * day,
    bodyWindowMs: 30 * day,
    dutyPercent: 100,
  });
  assert.deepEqual([swept.ended, swept.effects, swept.bodies], ["done", 0, 1]);
  assert.equal((await desk.show(first!.id))!.body, undefined);
  assert.equal((await desk.show(first!.id))!.decision!.why, ann.why);
  assert.notEqual((await desk.show(second!.id))!.body, undefined);
});

test("one process forgets at a time; one that died is taken over; a sweep that lost its lease forgets nothing more", async (t) => {
  const place = await testOutbox(t);
  const { store } = place;
  const operator = store.outboxOperator;
  const lease = await operator.takeForgetting("00000000-0000-4000-8000-000000000001", 60_000);
  assert.notEqual(lease, undefined);
  assert.equal((await forgetEffects({ store, windowMs: day })).ended, "busy");
  await place.pool.query("update outbox_cleanup set leased_until = clock_timestamp() - interval '1 second'");
  assert.equal((await forgetEffects({ store, windowMs: day, dutyPercent: 100 })).ended, "done");
  const batch = { firstPage: 0, pages: 8, olderThanMs: day, lockTimeoutMs: 100 };
  assert.equal(await operator.forgetEffects(lease!, batch), "lost");
  assert.equal(await operator.forgetBodies(lease!, day), "lost");
});

test("the window is at least that of every inbox in these tables", async (t) => {
  const { store } = await testOutbox(t);
  await store.cleanup.declareWindow("accounting", 30 * day);
  await assert.rejects(
    forgetEffects({ store, windowMs: 29 * day }),
    (error: InboxError) => error.code === "window-too-short" && /"accounting"/.test(error.message),
  );
  assert.equal((await forgetEffects({ store, windowMs: 30 * day })).ended, "done");
  await assert.rejects(forgetEffects({ store, windowMs: 0 }), { code: "invalid-option" });
  await assert.rejects(forgetEffects({ store, windowMs: 30 * day, bodyWindowMs: 31 * day }), {
    code: "invalid-option",
  });
});
