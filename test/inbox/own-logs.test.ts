import assert from "node:assert/strict";
import test from "node:test";
import { createInbox, createMessage, postgres, type Outcome } from "../../src/index.ts";
import type { Delivery, Intake, LogPosition, Settlement, Source } from "../../src/sources/source.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { testDatabase } from "../support/postgres.ts";

/** A source that hands over what the test gives it, and keeps how each was settled. */
function handSource(): {
  readonly source: Source;
  readonly intake: Promise<Intake>;
  readonly deliver: (id: string, position: LogPosition) => Promise<Settlement>;
} {
  let started: (intake: Intake) => void;
  const intake = new Promise<Intake>((resolve) => (started = resolve));
  const open = new Map<Delivery, (settlement: Settlement) => void>();
  const source: Source = {
    name: "hand",
    start: async (given) => started(given),
    async settle(list) {
      for (const [delivery, settlement] of list) open.get(delivery)?.(settlement);
    },
    stop: async () => undefined,
    close: async () => undefined,
  };
  return {
    source,
    intake,
    async deliver(id, position) {
      const received = createMessage({ producer: "p", id, key: id, payload: "{}" });
      const delivery: Delivery = { received, redelivered: false, position };
      const settled = new Promise<Settlement>((resolve) => open.set(delivery, resolve));
      void (await intake).deliver([delivery]);
      return settled;
    },
  };
}

interface Gate {
  readonly entered: Promise<void>;
  readonly enter: () => Promise<void>;
  readonly open: () => void;
}

function gate(): Gate {
  let enter = (): void => undefined;
  let open = (): void => undefined;
  const entered = new Promise<void>((resolve) => (enter = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { entered, open, enter: () => (enter(), opened) };
}

async function open(t: test.TestContext) {
  const { schema, pool } = await testDatabase(t, { max: 12 });
  await migrate(pool, { schema });
  await pool.query("create table applied (id text, by text)");
  const member = (name: string, before: (id: string) => Promise<void> | void = () => undefined) => {
    const hand = handSource();
    const inbox = createInbox({
      store: postgres(pool, { schema }),
      ...{ consumer: "accounting", lanes: 2, maxBatch: 1 },
    });
    const run = inbox.run(hand.source, async ({ id }, { tx }) => {
      await tx.query("insert into applied values ($1, $2)", [id, name]);
      await before(id);
    });
    t.after(() => run.stop());
    return { ...hand, run };
  };
  const applied = async (): Promise<string[]> =>
    (await pool.query<{ id: string; by: string }>("select id, by from applied order by id")).rows.map(
      ({ id, by }) => `${id} by ${by}`,
    );
  /** Resolves when somebody waits for a row that another transaction holds. */
  const somebodyWaits = async (): Promise<void> => {
    for (;;) {
      const { rows } = await pool.query(
        "select from pg_stat_activity where wait_event_type = 'Lock' and query like $1",
        [`%${schema}%log_owner%`],
      );
      if (rows.length > 0) return;
    }
  };
  return { member, applied, somebodyWaits };
}

const outcomes = (run: { stats(): { outcomes: Readonly<Record<Outcome, number>> } }) => run.stats().outcomes;

test("a new owner waits for what the old one has under way, and what the old one begins later is refused", async (t) => {
  const { member, applied, somebodyWaits } = await open(t);
  const busy = gate();
  const old = member("old", (id) => (id === "m1" ? busy.enter() : undefined));
  const fresh = member("fresh");
  const first = await (await old.intake).takeLog!("log");
  const under = old.deliver("m1", first);
  await busy.entered;
  let taken = false;
  const taking = (await fresh.intake).takeLog!("log").then((position) => ((taken = true), position));
  await somebodyWaits();
  assert.equal(taken, false);
  busy.open();
  assert.equal((await under).kind, "ack");
  const second = await taking;
  assert.ok(BigInt(second.epoch) > BigInt(first.epoch));

  assert.equal((await old.deliver("m2", first)).kind, "retry");
  assert.deepEqual(await applied(), ["m1 by old"]);
  assert.equal(outcomes(old.run).failed, 1);
  assert.equal((await fresh.deliver("m1", second)).kind, "ack");
  assert.equal((await fresh.deliver("m2", second)).kind, "ack");
  assert.deepEqual(await applied(), ["m1 by old", "m2 by fresh"]);
  assert.equal(outcomes(fresh.run).duplicate, 1);
});

test("a lost log takes nothing with it that comes from another one, and burns no attempt", async (t) => {
  const { member, applied } = await open(t);
  const old = member("old");
  const intake = await old.intake;
  const lost = await intake.takeLog!("lost");
  const kept = await intake.takeLog!("kept");
  const fresh = member("fresh");
  await (
    await fresh.intake
  ).takeLog!("lost");
  const settlements = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      old.deliver(`${i % 2 === 0 ? "kept" : "lost"}-${i}`, i % 2 === 0 ? kept : lost),
    ),
  );
  settlements.forEach(({ kind }, i) => assert.equal(kind, i % 2 === 0 ? "ack" : "retry"));
  assert.equal((await applied()).length, 20);
  assert.equal(outcomes(old.run).failed, 20);
});

test("an old owner that is never idle does not hold the new one up: what it has not begun is refused", async (t) => {
  const { member, applied } = await open(t);
  const busy = gate();
  let begun = 0;
  const old = member("old", async () => {
    if (++begun === 4) busy.enter().catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 20));
  });
  const first = await (await old.intake).takeLog!("log");
  const settled = Array.from({ length: 400 }, (_, i) => old.deliver(`m${i}`, first));
  await busy.entered;
  const fresh = member("fresh");
  await (
    await fresh.intake
  ).takeLog!("log");
  const then = (await applied()).length;
  await Promise.all(settled);
  assert.equal(
    (await applied()).length,
    then,
    "nothing of the old one is applied after the new one has begun",
  );
  assert.ok(then < 400);
});
