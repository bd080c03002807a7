import assert from "node:assert/strict";
import { test } from "node:test";
import { createInbox, migrate, postgres } from "../../src/index.ts";
import { message, recordEffect, testInbox } from "../inbox/support.ts";
import { testPool } from "../support/postgres.ts";
import { ownServer } from "../support/server.ts";
import { listSource, pendingStates, until } from "./support.ts";

const retry = {
  ...{ delayMs: 5, maxAttempts: 2, maxElapsedMs: 20 },
  environment: { delayMs: 5, maxDelayMs: 20 },
} as const;

const away = [
  Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9"), { code: "ECONNREFUSED" }),
  new TypeError("fetch failed", {
    cause: Object.assign(new Error("timeout"), { code: "UND_ERR_CONNECT_TIMEOUT" }),
  }),
  Object.assign(new Error("the database system is starting up"), { code: "57P03", severity: "FATAL" }),
];

for (const mode of ["inline", "store-first"] as const) {
  test(`${mode}: a downstream that is away for longer than the whole budget sends nothing to quarantine`, async (t) => {
    const { inbox, pool, effects, quarantined } = await testInbox(t, { retry, lanes: 2 });
    let up = false;
    let calls = 0;
    const ids = Array.from({ length: 20 }, (_, i) => `m${i}`);
    const run = inbox.run(
      listSource(ids.map((id, i) => message(id, { key: `k${i % 6}` }))),
      async (received, context) => {
        calls++;
        if (!up && Number(received.key!.slice(1)) < 3) throw away[calls % 3]!;
        await recordEffect(received, context);
      },
      { mode },
    );
    // Those that do not need it go on; the budget is two attempts and 20 ms.
    await until(pool, "(select count(*) from effect) = 9 and (select max(deferrals) from pending) >= 6");
    const states = await pendingStates(pool);
    assert.equal(Object.keys(states).length, 11);
    up = true;
    await run.finished;
    assert.deepEqual(await effects(), Object.fromEntries(ids.map((id) => [id, 1])));
    assert.deepEqual(await quarantined(), []);
    const { rows } = await pool.query("select * from attempt");
    assert.deepEqual(rows, [], "no attempt counts");
  });
}

test(
  "a database that is away for longer than the whole budget sends nothing to quarantine",
  { timeout: 90_000 },
  async (t) => {
    const server = await ownServer(t);
    const pool = await testPool(t, { url: server.url, schema: "inbox" });
    pool.on("error", () => undefined);
    await migrate(pool);
    await pool.query(
      "create table inbox.effect (message_id text not null, at timestamptz default clock_timestamp())",
    );
    const inbox = createInbox({ store: postgres(pool), consumer: "accounting", retry, lanes: 2 });
    await inbox.accept(Array.from({ length: 40 }, (_, i) => message(`m${i}`, { key: `k${i % 5}` })));
    let handled = 0;
    let failOnce = true;
    let reached: () => void = () => undefined;
    const half = new Promise<void>((resolve) => (reached = resolve));
    const worker = inbox.work(
      async (received, context) => {
        if (++handled === 12) reached();
        await recordEffect(received, context);
        if (received.id === "m30" && failOnce) {
          failOnce = false;
          throw new Error("once");
        }
        await new Promise((resolve) => setTimeout(resolve, 5));
      },
      { workerLeaseMs: 2_000 },
    );
    await half;
    await server.kill();
    while (worker.health().status !== "store-away") await new Promise((resolve) => setTimeout(resolve, 10));
    // Many times the budget.
    await new Promise((resolve) => setTimeout(resolve, 300));
    await server.restart();
    await until(pool, "not exists (select from pending)");
    await worker.stop();
    const { rows } = await pool.query<{ n: number; ids: number }>(
      "select count(*)::int as n, count(distinct message_id)::int as ids from effect",
    );
    assert.deepEqual(rows, [{ n: 40, ids: 40 }]);
    assert.deepEqual((await pool.query("select * from quarantine")).rows, []);
  },
);

test("two workers, a redelivery and accept at once: one effect", async (t) => {
  const { inboxWith, effects } = await testInbox(t, {}, { max: 24 });
  for (let round = 0; round < 20; round++) {
    const id = `m${round}`;
    const workers = [inboxWith({}), inboxWith({})].map((inbox) => inbox.work(recordEffect));
    const answers = await Promise.all([
      inboxWith({}).accept(message(id)),
      inboxWith({}).accept(message(id)),
      inboxWith({}).process(message(id), recordEffect),
      inboxWith({}).process(message(id), recordEffect),
    ]);
    const ended = answers.filter(({ outcome }) => ["applied", "stored", "duplicate"].includes(outcome));
    assert.ok(answers.every(({ outcome }) => ["applied", "stored", "duplicate", "busy"].includes(outcome)));
    assert.ok(ended.length > 0);
    await inboxWith({}).work(recordEffect, { untilDrained: true }).finished;
    await Promise.all(workers.map((worker) => worker.stop()));
  }
  assert.deepEqual(await effects(), Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`m${i}`, 1])));
});

test("a connection lost between the claim and the look for parked keys settles nothing twice", async (t) => {
  const { inbox, inboxWith, store, pool, effects } = await testInbox(t, {
    retry: { delayMs: 60_000, environment: { delayMs: 5, maxDelayMs: 20 } },
    lanes: 1,
  });
  await inbox.process(message("known", { key: "a" }), recordEffect);
  let cuts = 0;
  const cutting = inboxWith({
    store: {
      ...store,
      async begin(name, options) {
        const tx = await store.begin(name, options);
        return {
          ...tx,
          async parkedKeys(keys) {
            if (cuts++ > 0) return tx.parkedKeys(keys);
            await tx.query({ text: "select pg_terminate_backend(pg_backend_pid())", values: [] });
            throw new Error("The connection outlived its backend.");
          },
        };
      },
    },
  });
  // Puts key "b" aside, so that the next ones are asked about.
  const bad = listSource([message("bad", { key: "b" })]);
  await inbox
    .run(bad, () => {
      throw new Error("no");
    })
    .stop();
  const source = listSource([
    message("known", { key: "a" }),
    message("behind", { key: "b" }),
    message("new", { key: "a" }),
  ]);
  const run = cutting.run(source, recordEffect);
  await until(pool, "(select count(*) from pending) = 2 and (select count(*) from effect) = 2");
  const { outcomes } = await run.stop();
  assert.equal(cuts, 2);
  assert.deepEqual(await effects(), { known: 1, new: 1 });
  assert.deepEqual([outcomes.applied, outcomes.duplicate, outcomes.stored, outcomes.failed], [1, 1, 1, 0]);
  const { rows } = await pool.query("select message_id from attempt");
  assert.deepEqual(rows, [{ message_id: "bad" }]);
});
