import assert from "node:assert/strict";
import { test } from "node:test";
import { receiveMessage } from "../../src/message/create-message.ts";
import type { Delivery, Intake, Source } from "../../src/sources/source.ts";
import { gate, recordEffect } from "../inbox/support.ts";
import { hour, options, outageCase } from "./outage-case.ts";

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

const records = (from: number, to: number, minutesAgo: number): Log["records"] =>
  Array.from({ length: to - from }, (_, i) => ({
    id: `m${from + i}`,
    sentAt: new Date(Date.now() - minutesAgo * 60_000),
  }));

test("service down two hours, cleanup due, offsets rewound: nothing runs twice", async (t) => {
  const { pool, inbox, effects, quarantined, cleanup, down, untilCaughtUp, swept } = await outageCase(t);
  const log: Log = { records: records(0, 20, 5), committed: 0 };
  const before = inbox.run(reader(log), recordEffect, options);
  await untilCaughtUp();
  // It has been running for long; what it applied was half an hour ago.
  await pool.query("update source_clock set since = since - interval '1 day'");
  await pool.query("update message set processed_at = processed_at - interval '30 minutes'");
  await before.stop();
  assert.equal(log.committed, 20);

  await down(2);
  const away = await cleanup().once();
  assert.deepEqual([away.identities, away.consumers[0]?.waitsFor], [0, ["log:orders"]], "it is down");

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
  assert.equal(await swept(), 0, "half an hour and two of standing still are half an hour");
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
  const { pool, inbox, effects, quarantined, ranOn, untilCaughtUp, swept } = await outageCase(t);
  const log: Log = { records: records(0, 20, 5), committed: 0 };
  const run = inbox.run(reader(log), recordEffect, options);
  await untilCaughtUp();
  await pool.query("update source_clock set since = since - interval '1 day'");
  await ranOn(3);
  assert.equal(await swept(), 20);
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
