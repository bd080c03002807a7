import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import test from "node:test";
import { InboxError } from "../../src/errors.ts";
import type { MessageHandler } from "../../src/inbox/handler.ts";
import { receiveMessage } from "../../src/message/create-message.ts";
import { projection } from "../../src/replay/policy.ts";
import { caughtUp, listReplays, retire, retiredConsumers } from "../../src/replay/retire.ts";
import type { Delivery, Intake, Source } from "../../src/sources/source.ts";
import { lineOf, messageOf, payments, testReplay, why, type Payment, type TestReplay } from "./support.ts";

const code = (expected: string) => (error: unknown) => error instanceof InboxError && error.code === expected;

const v2 = projection("balances", 2);
const v3 = projection("balances", 3);

/** A source that delivers what the test gives it, until it is stopped. */
function pushed(): Source & { push(payment: Payment): Promise<void> } {
  let intake: Intake | undefined;
  let started: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => (started = resolve));
  const waiting = new Map<Delivery, () => void>();
  return {
    name: "pushed",
    async start(given) {
      intake = given;
      started();
    },
    /** Resolves when it is settled, as a broker would see it. */
    async push(payment) {
      await ready;
      const delivery: Delivery = { received: receiveMessage(messageOf(payment)), redelivered: false };
      const settled = new Promise<void>((resolve) => waiting.set(delivery, resolve));
      await intake!.deliver([delivery]);
      await settled;
    },
    async settle(list) {
      for (const [delivery, settlement] of list) {
        if (settlement.kind === "ack") waiting.get(delivery)?.();
        else if (settlement.kind === "retry") void intake!.deliver([delivery]);
      }
    },
    stop: async () => undefined,
    close: async () => undefined,
  };
}

/** Adds up; what it makes of a message depends on the version. */
const addUp =
  (table: string): MessageHandler =>
  async (message, { tx }) => {
    const { account, amount } = message.json() as Payment;
    await tx.query(
      `insert into ${table} (account, sum, messages) values ($1, $2, 1)
       on conflict (account) do update set sum = ${table}.sum + excluded.sum, messages = ${table}.messages + 1`,
      [account, amount],
    );
  };

async function tables({ pool }: TestReplay): Promise<void> {
  for (const table of ["balances_v2", "balances_v3"])
    await pool.query(`create table ${table} (account text primary key, sum bigint, messages int)`);
}

test("a projection is rebuilt while the old version runs and messages arrive, then takes over: equal state", async (t) => {
  const at = await testReplay(t);
  const { inboxWith, lines, path, replay, column, pool, schema } = at;
  await tables(at);
  const log = lines("log.ndjson", []);
  const all = payments(600);
  const [toV2, toV3] = [pushed(), pushed()];
  const old = inboxWith({ consumer: v2 }).run(toV2, addUp("balances_v2"), { workerLeaseMs: 300 });
  const live: Source[] = [];

  /** The broker: what arrives is in the log, and goes to those who read it live. */
  async function arrive(some: readonly Payment[]): Promise<void> {
    for (const payment of some) {
      appendFileSync(path("log.ndjson"), `${lineOf(payment)}\n`);
      await Promise.all([toV2.push(payment), ...(live.length > 0 ? [toV3.push(payment)] : [])]);
    }
  }

  await arrive(all.slice(0, 200));
  const policy = { kind: "projection", name: "balances", version: 3 } as const;
  const handler = addUp("balances_v3");
  const history = replay({ policy, source: log, handler });
  await Promise.all([history.finished, arrive(all.slice(200, 400))]);
  const early = await caughtUp(pool, { consumer: v2, successor: v3, schema });
  assert.equal(early.applied, 400);
  assert.ok(early.workers >= 1);

  const fresh = inboxWith({ consumer: v3 }).run(toV3, addUp("balances_v3"));
  live.push(toV3);
  await arrive(all.slice(400, 420));
  // What arrived after the history was read and before the live run began is missing: that is seen, and refused.
  const between = await caughtUp(pool, { consumer: v2, successor: v3, schema });
  if (between.missing > 0) {
    await assert.rejects(
      retire(pool, { consumer: v2, successor: v3, schema, ...why }),
      code("not-caught-up"),
    );
    assert.deepEqual(await retiredConsumers(pool, { schema }), []);
  }
  const [rest] = await Promise.all([
    replay({ policy, source: log, handler }).finished,
    arrive(all.slice(420, 600)),
  ]);
  assert.ok(rest.counts.applied >= between.missing - rest.counts.duplicates);

  const standing = await retire(pool, { consumer: v2, successor: v3, schema, ...why });
  assert.deepEqual([standing.applied, standing.missing, standing.stored], [600, 0, 0]);
  await assert.rejects(old.finished, code("consumer-retired"));
  await fresh.stop();
  const state = (table: string): string =>
    `select account || ' ' || sum || ' ' || messages from ${table} order by account`;
  assert.deepEqual(await column(state("balances_v3")), await column(state("balances_v2")));
  assert.deepEqual(await column("select sum(messages)::int from balances_v3"), [600]);

  const again = inboxWith({ consumer: v2 });
  await assert.rejects(again.run(pushed(), addUp("balances_v2")).finished, code("consumer-retired"));
  await assert.rejects(again.work(addUp("balances_v2")).finished, code("consumer-retired"));
  await assert.rejects(
    replay({ policy: { kind: "projection", name: "balances", version: 2 }, source: log, handler }).finished,
    code("consumer-retired"),
  );
  await assert.rejects(
    retire(pool, { consumer: v2, successor: v3, schema, ...why }),
    code("consumer-retired"),
  );
  const [row] = await retiredConsumers(pool, { schema });
  assert.deepEqual(
    [row?.consumer, row?.successor, row?.by, row?.applied, row?.missing],
    [v2, v3, "ann", 600, 0],
  );
  const runs = await listReplays(pool, { consumer: v3, schema });
  assert.deepEqual(
    runs.map(({ of, policy: kind, ended }) => [of, kind, ended]),
    [
      [v2, "projection", "done"],
      [v2, "projection", "done"],
    ],
  );
});

test("a consumer is not retired while its successor lacks something, unless somebody says how much", async (t) => {
  const { inboxWith, pool, schema } = await testReplay(t);
  const handler: MessageHandler = () => undefined;
  const [older, newer] = [inboxWith({ consumer: v2 }), inboxWith({ consumer: v3 })];
  await assert.rejects(retire(pool, { consumer: v2, successor: v3, schema, ...why }), code("not-caught-up"));
  await older.processBatch(payments(10).map(messageOf), handler);
  await newer.processBatch(payments(7).map(messageOf), handler);
  await newer.accept(messageOf(payments(1, 7)[0]!));
  const standing = { applied: 10, missing: 2, stored: 1, pending: 0, workers: 0 };
  assert.deepEqual(await caughtUp(pool, { consumer: v2, successor: v3, schema }), standing);
  const options = { consumer: v2, successor: v3, schema, ...why };
  await assert.rejects(retire(pool, { ...options, allowMissing: 2 }), code("not-caught-up"));
  await assert.rejects(retire(pool, { ...options, why: "" }), code("decision-needs"));
  await assert.rejects(retire(pool, { ...options, successor: v2 }), code("invalid-option"));
  assert.deepEqual(await retire(pool, { ...options, allowMissing: 3 }), standing);
  assert.equal((await retiredConsumers(pool, { schema }))[0]?.missing, 3);
});
