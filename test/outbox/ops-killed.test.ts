import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { InboxError } from "../../src/errors.ts";
import { createOutboxConsole, type OutboxConsole } from "../../src/outbox/console.ts";
import { refused, sent } from "../../src/relay/relay.ts";
import { spawnInbox } from "../cli/run-inbox.ts";
import { effect, startRelay, until } from "../relay/support.ts";
import { testOutbox, type TestOutbox } from "./support.ts";

/** What is set aside has one open entry, and no open entry is without such an effect. */
async function agree({ pool }: TestOutbox): Promise<void> {
  const { rows } = await pool.query<{ n: number }>(`
    select count(*)::int as n
      from (select position from outbox where state in ('quarantined', 'aside')) o
      full join (select position from outbox_refusal where status = 'open') r using (position)
     where o.position is null or r.position is null`);
  assert.equal(rows[0]!.n, 0);
}

test("a command that is killed in the middle of a decision on many leaves the rest to be resumed, nothing twice", async (t) => {
  const place = await testOutbox(t);
  const desk = createOutboxConsole({ store: place.store });
  await startRelay(t, place, { there: () => refused(new Error("no")) });
  const count = 1_800;
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      Array.from({ length: count }, (_, i) => effect(`m${i}`)),
    ),
  );
  await until(
    () => desk.count(),
    (open) => open === count,
  );
  const child = spawnInbox(
    [
      ...["outbox", "discard", "--all", "--expected", String(count), "--why", "x", "--by", "ann"],
      ...["--schema", place.schema],
    ],
    { env: { DATABASE_URL: place.url } },
  );
  const gone = new Promise((resolve) => child.once("exit", resolve));
  // Whoever carries on needs the third batch, so the command stands still in it.
  const blocker = await place.pool.connect();
  await blocker.query("begin");
  await until(
    () => desk.decisions(),
    (all) => all.length === 1 || child.exitCode !== null,
  );
  await blocker.query("select from outbox_decision_batch where batch = 2 for update");
  await until(
    () => desk.decisions(),
    ([decision]) => decision!.decided >= 1_000,
  );
  child.kill("SIGKILL");
  await gone;
  await blocker.query("rollback");
  blocker.release();
  const [left] = await desk.unfinished();
  assert.deepEqual([left!.matched, left!.decided, left!.skipped], [count, 1_000, 0]);
  await agree(place);
  const done = await desk.carryOn(left!.id);
  assert.deepEqual([done.decided, done.skipped], [count, 0]);
  const { rows } = await place.pool.query<{ all: number; different: number }>(
    `select count(*)::int as all, count(distinct digest)::int as different
       from outbox_attempt where outcome = 'discarded'`,
  );
  assert.deepEqual(rows[0], { all: count, different: count });
  assert.deepEqual(await place.waiting(), []);
});

const decider = { by: "ann", why: "at random" };

/** Decides on whatever is refused, in ways that `choose` gives, until it is stopped. */
async function decideAtRandom(desk: OutboxConsole, choose: () => number, over: () => boolean): Promise<void> {
  while (!over()) {
    for (const { id } of await desk.list({ limit: 5 })) {
      try {
        const way = choose();
        if (way < 6) await desk.retry(id, decider);
        else if (way < 8) await desk.repair(id, { payload: `repaired ${id}` }, decider);
        else await desk.discard(id, decider);
      } catch (error) {
        // Somebody else was faster.
        if (!(error instanceof InboxError) || error.code !== "already-decided") throw error;
      }
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("relays and operators at random: each key in its order, each effect sent or discarded once, entries and effects agree", async (t) => {
  const numbers = fc.sample(fc.nat(9), { numRuns: 4_000, seed: 20_301 });
  let next = 0;
  const choose = (): number => numbers[next++ % numbers.length]!;
  const place = await testOutbox(t);
  const desk = createOutboxConsole({ store: place.store });
  const arrived: string[] = [];
  const deliver = {
    deliver: async (given: { readonly id: string }) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (choose() < 4) return refused(new Error(`not now ${given.id}`));
      arrived.push(given.id);
      return sent();
    },
    concurrency: 4,
  };
  await startRelay(t, place, { there: deliver });
  await startRelay(t, place, { there: deliver });
  const keys = 6;
  const ids = Array.from({ length: 90 }, (_, i) => `m${i}`);
  let over = false;
  const operators = [1, 2, 3].map(() => decideAtRandom(desk, choose, () => over));
  for (let at = 0; at < ids.length; at += 10) {
    await place.commit((client) =>
      place.outbox.sendAll(
        client,
        ids.slice(at, at + 10).map((id) => effect(id, { key: `k${Number(id.slice(1)) % keys}` })),
      ),
    );
    await agree(place);
  }
  await until(place.waiting, (waiting) => waiting.length === 0);
  over = true;
  await Promise.all(operators);
  await agree(place);
  const attempts = await place.attempts();
  const ended = attempts.filter((line) => / (sent|discarded)$/.test(line)).map((line) => line.split(":")[0]!);
  assert.deepEqual([...ended].sort(), [...ids].sort());
  assert.equal(new Set(arrived).size, arrived.length);
  for (let key = 0; key < keys; key++) {
    const own = arrived.filter((id) => Number(id.slice(1)) % keys === key);
    assert.deepEqual(
      own,
      [...own].sort((a, b) => Number(a.slice(1)) - Number(b.slice(1))),
    );
  }
  const [decisions, entries] = [
    await desk.decisions(1_000),
    await desk.list({ status: "all", limit: 1_000 }),
  ];
  assert.equal(decisions.length, entries.length);
  assert.equal(new Set(entries.map(({ decision }) => decision!.id)).size, entries.length);
});
