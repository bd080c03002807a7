import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { EffectLease, TakenEffect, Verdict } from "../../src/store/outbox.ts";
import type { LocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { ownServer } from "../support/postgres.ts";
import { bundle, testOutbox, type TestOutbox } from "../outbox/support.ts";
import { effect } from "./support.ts";

const relayId = randomUUID();

async function take({ store }: TestOutbox, maxEffects = 1_000): Promise<readonly TakenEffect[]> {
  const request = { relayId, leaseMs: 60_000, maxLanes: 64, maxEffects, maxBytes: 1e9 };
  return (await store.outbox.take("there", request)).effects;
}

const verdict = (taken: TakenEffect, more: Partial<Verdict> = {}): Verdict => ({
  ...{ lease: taken.lease, position: taken.position, action: "remove", outcome: "sent", delayMs: 0 },
  ...{ counts: false, code: undefined, error: undefined, status: undefined, result: undefined, tookMs: 1 },
  ...more,
});

const leasesOf = (effects: readonly TakenEffect[]): readonly EffectLease[] => [
  ...new Map(effects.map(({ lease }) => [lease.lane, lease])).values(),
];

/** Takes what may be sent, has it sent, and gives the lanes back. */
async function sendAll(place: TestOutbox): Promise<readonly string[]> {
  const effects = await take(place);
  await place.store.outbox.settle(
    "there",
    relayId,
    effects.map((one) => verdict(one)),
    leasesOf(effects),
  );
  return effects.map(({ id }) => id);
}

/** As if the last look of every lane was three seconds ago. */
const threeSecondsLater = ({ pool }: TestOutbox): Promise<unknown> =>
  pool.query("update outbox_lane set next_at = next_at - interval '3 seconds' where taken_at is not null");

const laneOf = async ({ pool }: TestOutbox): Promise<{ ready_from: string; next_ready: string }> =>
  (await pool.query("select ready_from, next_ready from outbox_lane where taken_at is not null"))
    .rows[0] as never;

// Marks move when every transaction of their moment has ended, so nobody else's may run beside them.
let server: LocalPostgres;
const ends: (() => Promise<void> | void)[] = [];
before(async () => {
  server = await ownServer({ after: (end) => void ends.push(end) });
});
after(async () => {
  for (const end of ends) await end();
});

async function place(t: Parameters<typeof testOutbox>[0]): Promise<TestOutbox> {
  const made = await testOutbox(t, {}, { url: server.url });
  await made.store.outbox.openLanes(["there"]);
  return made;
}

const keyed = (id: string) => effect(id, { key: "k" });

test("a lane is looked at from behind what was sent, also when nothing more comes", async (t) => {
  const outbox = await place(t);
  await outbox.commit((client) => outbox.outbox.sendAll(client, ["1", "2"].map(keyed)));
  assert.deepEqual(await sendAll(outbox), ["1", "2"]);
  const { rows } = await outbox.pool.query<{ last: string }>(
    "select last_value as last from outbox_position",
  );
  for (let i = 0; i < 2; i++) {
    await threeSecondsLater(outbox);
    assert.deepEqual(await outbox.store.outbox.waiting(["there"], true), ["there"]);
    assert.deepEqual(await take(outbox), []);
  }
  assert.equal((await laneOf(outbox)).ready_from, rows[0]!.last);
  assert.deepEqual(await outbox.store.outbox.waiting(["there"], true), []);
  await outbox.commit((client) => outbox.outbox.send(client, keyed("3")));
  assert.deepEqual(await sendAll(outbox), ["3"]);
});

for (const form of ["alone", "in a bundle"]) {
  test(`what a transaction asks for ${form} that stays open for long is sent when it commits, and first of its key`, async (t) => {
    const outbox = await place(t);
    await outbox.commit((client) => outbox.outbox.send(client, keyed("before")));
    const ids = await outbox.commit(async (late) => {
      // Its first statement: it has no number of its own before.
      if (form === "alone") await outbox.outbox.send(late, keyed("late"));
      else await bundle(outbox, late, [keyed("late")]);
      await outbox.commit((client) => outbox.outbox.send(client, effect("other", { key: "k" })));
      const taken = [...(await sendAll(outbox))];
      for (let i = 0; i < 4; i++) {
        await threeSecondsLater(outbox);
        taken.push(...(await sendAll(outbox)));
        await outbox.commit((client) => outbox.outbox.send(client, effect(`other-${i}`, { key: "k" })));
      }
      return taken;
    });
    assert.deepEqual(ids, ["before", "other", "other-0", "other-1", "other-2"]);
    // The one behind it was asked for when it was committed, or not: here it waits with it, and goes behind it.
    assert.deepEqual(await outbox.store.outbox.waiting(["there"], true), ["there"]);
    assert.deepEqual(await sendAll(outbox), ["late", "other-3"]);
  });
}

test("a bundle that waits holds the marks before it", async (t) => {
  const outbox = await place(t);
  await outbox.commit((client) => outbox.outbox.send(client, keyed("1")));
  assert.deepEqual(await sendAll(outbox), ["1"]);
  await outbox.commit((client) => bundle(outbox, client, [keyed("2"), keyed("3")]));
  // Somebody else unpacks it and takes its time.
  await outbox.commit(async (client) => {
    await client.query("select outbox_unpack('there', 1)");
    for (let i = 0; i < 3; i++) {
      await threeSecondsLater(outbox);
      assert.deepEqual(await take(outbox), []);
    }
  });
  assert.deepEqual(await sendAll(outbox), ["2", "3"]);
});

test("what waited behind its key is found at its old place when the key is free", async (t) => {
  const outbox = await place(t);
  await outbox.commit((client) => outbox.outbox.sendAll(client, ["1", "2", "3"].map(keyed)));
  const [first, ...others] = await take(outbox, 1);
  assert.deepEqual([first!.id, others.length], ["1", 0]);
  const failed = verdict(first!, {
    action: "scheduled",
    outcome: "failed",
    delayMs: 60_000,
    code: "destination-failed",
  });
  await outbox.store.outbox.settle("there", relayId, [failed], [first!.lease]);
  // 2 and 3 are put behind it, and the marks pass them.
  assert.deepEqual(await take(outbox), []);
  await outbox.commit((client) => outbox.outbox.send(client, keyed("4")));
  for (let i = 0; i < 3; i++) {
    await threeSecondsLater(outbox);
    assert.deepEqual(await take(outbox), []);
  }
  const { rows } = await outbox.pool.query<{ id: string; passed: boolean }>(
    `select o.effect_id as id, o.position < l.ready_from as passed
       from outbox o join outbox_lane l on l.destination = o.destination and l.lane = o.lane order by o.position`,
  );
  assert.ok(
    rows.filter(({ id }) => id !== "4").every(({ passed }) => passed),
    JSON.stringify(rows),
  );
  await outbox.pool.query("update outbox set due_at = clock_timestamp() where state = 'scheduled'");
  await outbox.pool.query("update outbox_lane set due_from = '-infinity'");
  assert.deepEqual(await sendAll(outbox), ["1"]);
  assert.deepEqual(await sendAll(outbox), ["2", "3", "4"]);
});

test("with an old snapshot open, handing out goes on costing what it did", async (t) => {
  const outbox = await place(t);
  const reader = await outbox.pool.connect();
  try {
    await reader.query("begin isolation level repeatable read read only");
    await reader.query("select count(*) from outbox");
    const scanned: number[] = [];
    for (let round = 0; round < 6; round++) {
      const ids = Array.from({ length: 400 }, (_, i) => `${round}-${i}`);
      await outbox.commit((client) =>
        outbox.outbox.sendAll(
          client,
          ids.map((id) => effect(id, { key: "k" })),
        ),
      );
      await threeSecondsLater(outbox);
      assert.deepEqual(await sendAll(outbox), ids);
      await threeSecondsLater(outbox);
      await take(outbox);
      // What one look reads of the index that holds an entry of everything that was sent.
      const { rows } = await outbox.pool.query<{
        "QUERY PLAN": readonly [{ Plan: { "Shared Hit Blocks": number } }];
      }>("explain (analyze, buffers, format json) select * from outbox_with_work(array['there'], true)");
      scanned.push(rows[0]!["QUERY PLAN"][0].Plan["Shared Hit Blocks"]);
    }
    assert.ok(scanned.at(-1)! < scanned[1]! * 1.3, `blocks read a look: ${scanned.join(", ")}`);
  } finally {
    await reader.query("rollback");
    reader.release();
  }
});
