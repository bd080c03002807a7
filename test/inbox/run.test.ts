import assert from "node:assert/strict";
import { test } from "node:test";
import { migrate, postgres, createInbox, type MessageHandler, type Processed } from "../../src/index.ts";
import { receiveMessage } from "../../src/message/create-message.ts";
import type { Delivery, Intake, Settlement, Source } from "../../src/sources/source.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { testPool } from "../support/postgres.ts";
import { ownServer } from "../support/server.ts";
import { gate, message, recordEffect, testInbox } from "./support.ts";

/** A source that a test plays: it redelivers what is to be retried, and remembers every settlement. */
function playedSource(
  messages: readonly Parameters<typeof receiveMessage>[0][],
  options: { readonly endless?: boolean } = {},
) {
  const settled = new Map<Delivery, Settlement[]>();
  const kinds: string[] = [];
  const calls: string[] = [];
  let intake: Intake | undefined;
  let open = 0;
  const hand = (given: Parameters<typeof receiveMessage>[0], redelivered: boolean): Delivery => {
    const delivery: Delivery = { received: receiveMessage(given), redelivered };
    settled.set(delivery, []);
    open++;
    return delivery;
  };
  const source: Source = {
    name: "played",
    async start(own) {
      intake = own;
      calls.push("start");
      const deliveries = messages.map((given) => hand(given, false));
      void own.deliver(deliveries).then(() => calls.push("room"));
      if (deliveries.length === 0 && !options.endless) own.end();
    },
    async settle(settlements) {
      calls.push("settle");
      for (const [delivery, settlement] of settlements) {
        settled.get(delivery)?.push(settlement);
        kinds.push(settlement.kind);
        open--;
        // Stopped, it delivers nothing more; a timer would keep the process for as long as the retry waits.
        if (settlement.kind !== "retry" || calls.includes("stop")) continue;
        const again = hand({ ...(delivery.received as object), payload: delivery.received.bytes }, true);
        setTimeout(() => void intake?.deliver([again]), settlement.afterMs);
      }
      if (open === 0 && !options.endless) intake?.end();
    },
    async stop() {
      calls.push("stop");
    },
    async close() {
      calls.push("close");
    },
  };
  return { source, settled, kinds, calls };
}

const settledOnce = (settled: Map<Delivery, Settlement[]>): void => {
  for (const [delivery, settlements] of settled) {
    assert.equal(settlements.length, 1, JSON.stringify(delivery.received));
  }
};

function listen<T>(t: Scope, name: keyof typeof telemetry, matches: (event: T) => boolean = () => true): T[] {
  const events: T[] = [];
  const listener = (event: unknown): void => {
    if (matches(event as T)) events.push(event as T);
  };
  telemetry[name].subscribe(listener);
  onTestEnd(t, () => void telemetry[name].unsubscribe(listener));
  return events;
}

test("settles every delivery exactly once, whatever becomes of it", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const { source, settled, calls } = playedSource([
    message("m1"),
    message("m1"),
    message("m1", { payload: "other" }),
    message("fails-once"),
    message("poison"),
    { id: 5, producer: "payments", payload: "x" },
    ...Array.from({ length: 500 }, (_, i) => message(`n${i}`, { key: `k${i % 7}` })),
  ]);
  let failed = false;
  const stats = await inbox.run(source, async (received, context) => {
    if (received.id === "poison") throw new Error("always");
    if (received.id === "fails-once" && !failed) {
      failed = true;
      throw new Error("once");
    }
    await recordEffect(received, context);
  }).finished;
  settledOnce(settled);
  assert.equal(stats.inHand, 0);
  assert.equal(stats.outcomes.applied, 501);
  assert.equal(stats.outcomes.duplicate + stats.outcomes.conflict, 2);
  assert.deepEqual([stats.outcomes.stored, stats.outcomes.rejected], [2, 1]);
  // What failed is acknowledged and tried again from pending, before the run is over.
  const { applied, rejected, stored } = stats.pending.outcomes;
  assert.deepEqual({ applied, rejected, stored }, { applied: 1, rejected: 1, stored: 3 });
  assert.deepEqual(new Set(Object.values(await effects())), new Set([1]));
  assert.deepEqual(calls.slice(-2), ["stop", "close"]);
});

test("holds a source back when enough is in hand, by count and by bytes", async (t) => {
  const { inboxWith } = await testInbox(t);
  for (const options of [{ maxInHand: 3 }, { maxInHandBytes: 40 }]) {
    const { source, calls } = playedSource(Array.from({ length: 5 }, (_, i) => message(`b${i}`)));
    const finish = gate();
    const inbox = inboxWith({ consumer: JSON.stringify(options) });
    const run = inbox.run(source, () => finish.opened, options);
    while (run.stats().inHand < 5) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(calls.includes("room"), false);
    finish.open();
    await run.finished;
    assert.equal(calls.includes("room"), true);
  }
});

test("stops: finishes what is begun, releases the rest, settles, then closes", async (t) => {
  const { inboxWith, effects } = await testInbox(t);
  const inbox = inboxWith({ lanes: 1, maxBatch: 1 });
  const { source, settled, kinds, calls } = playedSource(
    Array.from({ length: 10 }, (_, i) => message(`m${i}`, { key: "k" })),
  );
  const started = gate();
  const finish = gate();
  const run = inbox.run(source, async (received, context) => {
    started.open();
    await finish.opened;
    await recordEffect(received, context);
  });
  await started.opened;
  const stopped = run.stop();
  finish.open();
  await stopped;
  await run.stop();
  settledOnce(settled);
  assert.deepEqual(kinds.sort(), ["ack", ...Array<string>(9).fill("release")]);
  assert.deepEqual(await effects(), { m0: 1 });
  assert.deepEqual(calls.slice(-1), ["close"]);
});

test("interrupts a handler that outlasts the stop's deadline, and counts no attempt", async (t) => {
  const { inbox, pool, effects } = await testInbox(t);
  const { source, kinds } = playedSource([message("m1")], { endless: true });
  const started = gate();
  const run = inbox.run(
    source,
    async (received, context) => {
      await recordEffect(received, context);
      started.open();
      await new Promise(() => undefined);
    },
    { stopTimeoutMs: 20 },
  );
  await started.opened;
  await run.stop();
  assert.deepEqual(kinds, ["retry"]);
  assert.deepEqual(await effects(), {});
  assert.deepEqual((await pool.query("select count(*)::int as n from attempt")).rows, [{ n: 0 }]);
});

test("goes on when a settlement fails: the redelivery is a duplicate", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const played = playedSource([message("m1"), message("m2")]);
  const settle = played.source.settle.bind(played.source);
  let unheard: number | undefined;
  const warnings = listen<{ message: string }>(t, "warning");
  const source: Source = {
    ...played.source,
    async settle(settlements) {
      if (unheard !== undefined) return settle(settlements);
      unheard = settlements.length;
      // The broker did not hear it and delivers again.
      await settle(settlements.map(([delivery]) => [delivery, { kind: "retry", afterMs: 0 }] as const));
      throw new Error("the broker is away");
    },
  };
  const stats = await inbox.run(source, recordEffect).finished;
  assert.ok(unheard === 1 || unheard === 2);
  assert.deepEqual([stats.outcomes.applied, stats.outcomes.duplicate], [2, unheard]);
  assert.deepEqual(await effects(), { m1: 1, m2: 1 });
  assert.ok(warnings.some((warning) => warning.message.includes("the broker is away")));
});

test("rejects when the source fails, after settling what is in hand", async (t) => {
  const { inbox } = await testInbox(t);
  const calls: string[] = [];
  const source: Source = {
    name: "failing",
    async start(intake) {
      void intake.deliver([{ received: receiveMessage(message("m1")), redelivered: false }]);
      intake.end(new Error("unreadable"));
    },
    async settle(settlements) {
      calls.push(...settlements.map(([, { kind }]) => kind));
    },
    async stop() {},
    async close() {
      calls.push("close");
    },
  };
  await assert.rejects(inbox.run(source, () => undefined).finished, {
    code: "source-failed",
    message: /failing ended: unreadable/,
  });
  assert.deepEqual(calls, ["ack", "close"]);
});

test(
  "waits while the database is away, tells it once, and uses up no attempt (RTY-03)",
  { timeout: 90_000 },
  async (t) => {
    const server = await ownServer(t);
    const pool = await testPool(t, { url: server.url, connectionTimeoutMillis: 2_000 });
    await migrate(pool);
    await pool.query("create table effect (message_id text not null)");
    const states = listen<{ consumer: string; state: string }>(
      t,
      "store",
      ({ consumer }) => consumer === "away",
    );
    const processed = listen<Processed & { consumer: string }>(
      t,
      "outcome",
      ({ consumer }) => consumer === "away",
    );
    const inbox = createInbox({ store: postgres(pool), consumer: "away", lanes: 2, maxBatch: 5 });
    const { source, settled } = playedSource(
      Array.from({ length: 200 }, (_, i) => message(`m${i}`, { key: `k${i % 9}` })),
    );
    let handled = 0;
    let down: Promise<void> | undefined;
    const handler: MessageHandler = async (received, context) => {
      if (++handled === 50) down = server.kill();
      await recordEffect(received, context);
    };
    const run = inbox.run(source, handler);
    while (states.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await down;
    await server.restart();
    const stats = await run.finished;
    settledOnce(settled);
    assert.equal(stats.outcomes.applied + stats.outcomes.duplicate, 200);
    assert.deepEqual(
      processed.filter(({ outcome }) => outcome === "failed"),
      [],
    );
    assert.deepEqual(
      states.map(({ state }) => state),
      ["away", "back"],
    );
    const { rows } = await pool.query(
      "select count(*)::int as n, count(distinct message_id)::int as ids, (select count(*)::int from inbox.attempt) as attempts from effect",
    );
    assert.deepEqual(rows, [{ n: 200, ids: 200, attempts: 0 }]);
  },
);

test("extends deliveries in hand where the source can", async (t) => {
  const { inbox } = await testInbox(t);
  const { source } = playedSource([message("m1")]);
  const extended = gate();
  const finish = gate();
  const run = inbox.run(
    {
      ...source,
      async extend(deliveries) {
        if (deliveries.length === 1) extended.open();
      },
    },
    () => finish.opened,
    { extendEveryMs: 5 },
  );
  await extended.opened;
  finish.open();
  await run.finished;
});

test("gives up at the start when there is no schema, and names what to run", async (t) => {
  const { inboxWith, pool } = await testInbox(t);
  const { source, calls } = playedSource([message("m1")]);
  const inbox = inboxWith({ store: postgres(pool, { schema: "nothing_here" }) });
  await assert.rejects(inbox.run(source, recordEffect).finished, { code: "schema-missing" });
  assert.deepEqual(calls, ["close"]);
});
