import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { receiveMessage } from "../../src/message/create-message.ts";
import { createCleanup, type Cleanup } from "../../src/retention/retention.ts";
import type { Delivery, Intake, Source } from "../../src/sources/source.ts";
import { gate, recordEffect, testInbox } from "../inbox/support.ts";

const hour = 3_600_000;

/** A log that can be rewound, as a partition of Kafka. */
interface Log {
  readonly records: { readonly id: string; readonly sentAt: Date }[];
  committed: number;
}

/** Reads a log from where it was committed. */
function reader(log: Log): Source {
  let intake: Intake | undefined;
  let read = log.committed;
  let stopped = false;
  const open = new Map<Delivery, number>();
  async function handOver(): Promise<void> {
    while (!stopped && read < log.records.length) {
      const { id, sentAt } = log.records[read]!;
      const received = receiveMessage({ producer: "shop", id, payload: id, time: sentAt });
      const delivery: Delivery = { received, redelivered: false };
      open.set(delivery, read++);
      await intake?.deliver([delivery]);
    }
  }
  return {
    name: "log:orders",
    async start(given) {
      intake = given;
      void handOver();
    },
    async settle(settlements) {
      for (const [delivery, { kind }] of settlements) if (kind === "ack") open.delete(delivery);
      log.committed = Math.min(read, ...open.values());
    },
    async stop() {
      stopped = true;
    },
    async close() {},
    lag: async () => log.records.length - log.committed,
  };
}

async function outageCase(t: TestContext) {
  const given = await testInbox(t);
  const { pool, store } = given;
  const cleanup = (): Cleanup =>
    createCleanup({ store, windowsMs: { accounting: hour }, skewMs: 60_000, dutyPercent: 100 });
  /** So much time passes for all that the database holds. */
  const pass = async (hours: number): Promise<void> => {
    const columns = {
      message: ["processed_at"],
      source_clock: ["since", "caught_up_at", "advanced_at"],
      source_worker: ["caught_up_at", "seen_until"],
      source_stop: ["from_at", "to_at"],
      ledger_stretch: ["oldest"],
      worker: ["lease_until", "closed_at"],
    };
    for (const [table, names] of Object.entries(columns)) {
      const sets = names.map((name) => `${name} = ${name} - $1 * interval '1 hour'`).join(", ");
      await pool.query(`update ${table} set ${sets}`, [hours]);
    }
  };
  const untilCaughtUp = async (after?: Date): Promise<Date> => {
    for (;;) {
      const [clock] = await store.progress.list("accounting");
      const at = clock?.caughtUpAt;
      if (clock?.state === "caught-up" && at !== undefined && (after === undefined || at > after)) return at;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return { ...given, cleanup, pass, untilCaughtUp };
}

const records = (from: number, to: number, minutesAgo: number): Log["records"] =>
  Array.from({ length: to - from }, (_, i) => ({
    id: `m${from + i}`,
    sentAt: new Date(Date.now() - minutesAgo * 60_000),
  }));

const options = { progressEveryMs: 250 } as const;

test("service down two hours, cleanup due, offsets rewound: nothing runs twice", async (t) => {
  const { pool, inbox, effects, quarantined, cleanup, pass, untilCaughtUp } = await outageCase(t);
  const log: Log = { records: records(0, 20, 5), committed: 0 };
  const before = inbox.run(reader(log), recordEffect, options);
  await untilCaughtUp();
  // It has been running for long; what it applied was half an hour ago.
  await pool.query("update source_clock set since = since - interval '1 day'");
  await pool.query("update message set processed_at = processed_at - interval '30 minutes'");
  await before.stop();
  assert.equal(log.committed, 20);

  await pass(2);
  const down = await cleanup().once();
  assert.deepEqual([down.identities, down.consumers[0]?.waitsFor], [0, ["log:orders"]], "it is down");

  // Meanwhile others sent on; and somebody sets the offsets back.
  log.records.push(...records(20, 40, 90));
  log.committed = 5;
  const held = gate();
  const after = inbox.run(
    reader(log),
    async (message, context) => {
      await held.opened;
      await recordEffect(message, context);
    },
    options,
  );
  while (after.stats().deliveries < 35) await new Promise((resolve) => setTimeout(resolve, 5));
  const starting = await cleanup().once();
  assert.deepEqual(
    [starting.identities, starting.consumers[0]?.waitsFor],
    [0, ["log:orders"]],
    "not caught up",
  );
  const opened = new Date(Date.now() - 60_000);
  held.open();
  await untilCaughtUp(opened);
  const due = await cleanup().once();
  assert.deepEqual(
    [due.identities, due.consumers[0]?.waitsFor],
    [0, []],
    "half an hour and two of standing still are half an hour",
  );
  // And once more, from the very beginning.
  await after.stop();
  log.committed = 0;
  const again = inbox.run(reader(log), recordEffect, options);
  while (log.committed < 40) await new Promise((resolve) => setTimeout(resolve, 5));
  await again.stop();
  const counts = await effects();
  assert.equal(Object.keys(counts).length, 40);
  for (const [id, times] of Object.entries(counts)) assert.equal(times, 1, id);
  assert.deepEqual(await quarantined(), [], "nothing that came during the outage is late");
});

test("what is forgotten when its time is over and then comes again is late, and does not run", async (t) => {
  const { pool, inbox, effects, quarantined, cleanup, pass, untilCaughtUp } = await outageCase(t);
  const log: Log = { records: records(0, 20, 5), committed: 0 };
  const run = inbox.run(reader(log), recordEffect, options);
  await untilCaughtUp();
  await pool.query("update source_clock set since = since - interval '1 day'");
  // Three hours in which it ran on, with nothing to do.
  const caught = await untilCaughtUp();
  await pass(3);
  await pool.query("update source_clock set caught_up_at = now(), advanced_at = now()");
  assert.ok(caught);
  const swept = await cleanup().once();
  assert.equal(swept.identities, 20);
  await run.stop();
  log.committed = 0;
  // Their time goes with them: they were sent three hours ago.
  for (const [i, one] of log.records.entries()) {
    log.records[i] = { ...one, sentAt: new Date(one.sentAt.getTime() - 3 * hour) };
  }
  log.records.push(...records(20, 22, 0));
  const again = inbox.run(reader(log), recordEffect, options);
  while (log.committed < 22) await new Promise((resolve) => setTimeout(resolve, 5));
  await again.stop();
  const counts = await effects();
  assert.equal(Object.keys(counts).length, 22);
  for (const [id, times] of Object.entries(counts)) assert.equal(times, 1, id);
  const late = await quarantined();
  assert.deepEqual([late.length, new Set(late.map(({ code }) => code))], [20, new Set(["late"])]);
});
