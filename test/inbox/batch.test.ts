import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import {
  batch,
  PermanentError,
  postgres,
  sql,
  type Handler,
  type Message,
  type MessageHandler,
  type Processed,
} from "../../src/index.ts";
import { bundle } from "../../scripts/bundle.ts";
import type * as Package from "../../src/index.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { testPool } from "../support/postgres.ts";
import { message, recordEffect, testInbox } from "./support.ts";

const recordStatement: MessageHandler = ({ id }) => sql`insert into effect (message_id) values (${id})`;
const recordAll = batch(
  (messages: readonly Message[]) =>
    sql`insert into effect (message_id) select unnest(${messages.map(({ id }) => id)}::text[])`,
);
const forms: Record<string, Handler> = { tx: recordEffect, statements: recordStatement, set: recordAll };

const outcomesOf = (processed: readonly Processed[]): string[] => processed.map(({ outcome }) => outcome);

/** What a channel told about this consumer while the test ran. */
function listen<T extends { consumer?: string }>(
  t: Scope,
  name: "claimed" | "committed" | "rolledBack",
  consumer: string,
): T[] {
  const events: T[] = [];
  const listener = (event: unknown): void => {
    if ((event as T).consumer === consumer) events.push(event as T);
  };
  telemetry[name].subscribe(listener);
  onTestEnd(t, () => void telemetry[name].unsubscribe(listener));
  return events;
}

for (const [form, handler] of Object.entries(forms)) {
  test(`applies every message of a batch once, in few transactions, with a handler of the form ${form}`, async (t) => {
    const { inbox, inboxWith, effects } = await testInbox(t);
    const consumer = `few-${form}`;
    const commits = listen<{ consumer: string; size: number }>(t, "committed", consumer);
    const messages = Array.from({ length: 1_000 }, (_, i) => message(`m${i}`, { key: `k${i % 50}` }));
    const first = await inboxWith({ consumer }).processBatch(messages, handler);
    assert.deepEqual(new Set(outcomesOf(first)), new Set(["applied"]));
    assert.ok(commits.length < 200, `${commits.length} transactions`);
    const again = await inboxWith({ consumer }).processBatch(messages, handler);
    assert.deepEqual(new Set(outcomesOf(again)), new Set(["duplicate"]));
    assert.equal(
      Object.values(await effects()).reduce((sum, n) => sum + n, 0),
      1_000,
    );
    void inbox;
  });

  test(`sets one failing message aside and applies its 99 neighbours, with a handler of the form ${form} (BAT-05)`, async (t) => {
    const { inbox, effects, pool } = await testInbox(t);
    await pool.query("alter table effect add constraint no_poison check (message_id <> 'm50')");
    const messages = Array.from({ length: 100 }, (_, i) => message(`m${i}`, { key: "one" }));
    const outcomes = outcomesOf(await inbox.processBatch(messages, handler));
    assert.deepEqual(
      outcomes,
      messages.map(({ id }) => (id === "m50" ? "failed" : "applied")),
    );
    assert.equal(Object.keys(await effects()).length, 99);
    const { rows } = await pool.query("select message_id, code from attempt");
    assert.deepEqual(rows, [{ message_id: "m50", code: "handler-failed" }]);
  });
}

test("answers an in-batch copy after the first one's commit, and a copy with another payload as a conflict (BAT-02)", async (t) => {
  const { inbox, effects, quarantined } = await testInbox(t);
  const outcomes = await inbox.processBatch(
    [message("m1"), message("m2"), message("m1"), message("m2", { payload: "other" }), message("m1")],
    recordEffect,
  );
  assert.deepEqual(outcomesOf(outcomes), ["applied", "applied", "duplicate", "conflict", "duplicate"]);
  assert.deepEqual(await effects(), { m1: 1, m2: 1 });
  assert.deepEqual(
    (await quarantined()).map(({ message_id }) => message_id),
    ["m2"],
  );
});

test("answers the copies of a failing message for redelivery and counts one attempt", async (t) => {
  const { inbox, pool } = await testInbox(t);
  const outcomes = await inbox.processBatch([message("m1"), message("m1")], () =>
    Promise.reject(new Error("no")),
  );
  assert.deepEqual(outcomesOf(outcomes), ["failed", "busy"]);
  assert.deepEqual((await pool.query("select count(*)::int as n from attempt")).rows, [{ n: 1 }]);
});

test("claims 10,000 messages in one statement (BAT-01)", async (t) => {
  const { inbox, inboxWith } = await testInbox(t);
  const consumer = "large";
  const commits = listen<{ consumer: string; size: number }>(t, "committed", consumer);
  const large = inboxWith({ consumer, lanes: 1, maxBatch: 10_000, maxTransactionMs: 60_000 });
  const all = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => message(`m${from + i}`, { key: "k" }));
  // The lane learns first how fast messages go, and quadruples what it takes.
  await large.processBatch(all(0, 8_000), () => undefined);
  const outcomes = outcomesOf(await large.processBatch(all(8_000, 20_000), () => undefined));
  assert.deepEqual(new Set(outcomes), new Set(["applied"]));
  assert.ok(
    commits.some(({ size }) => size === 10_000),
    commits.map(({ size }) => size).join(" "),
  );
  void inbox;
});

test("does not deadlock when two inboxes claim overlapping batches in opposite order (BAT-04)", async (t) => {
  const { url, schema, inboxWith, effects } = await testInbox(t, { lanes: 1, claimLockTimeoutMs: 10_000 });
  const workers = await Promise.all(
    [0, 1].map(async () =>
      inboxWith({ store: postgres(await testPool(t, { url, schema, max: 3 }), { schema }) }),
    ),
  );
  const rolledBack = listen<{ consumer: string }>(t, "rolledBack", "accounting");
  for (let round = 0; round < 10; round++) {
    const messages = Array.from({ length: 50 }, (_, i) => message(`r${round}m${i}`, { key: "k" }));
    const [forward, backward] = await Promise.all([
      workers[0]?.processBatch(messages, recordStatement),
      workers[1]?.processBatch(messages.toReversed(), recordStatement),
    ]);
    for (const { outcome } of [...(forward ?? []), ...(backward ?? [])]) {
      assert.ok(outcome === "applied" || outcome === "duplicate", outcome);
    }
  }
  assert.deepEqual(rolledBack, []);
  assert.deepEqual(new Set(Object.values(await effects())), new Set([1]));
});

test("fails a handler whose list holds something else than statements, instead of leaving it out", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const mixed = ({ id }: Message) =>
    [sql`insert into effect (message_id) values (${id})`, undefined] as never;
  const result = await inbox.process(message("m1"), mixed);
  assert.deepEqual(
    [result.outcome, (result.error as { code?: string }).code],
    ["rejected", "invalid-handler"],
  );
  assert.equal((await inbox.process(message("m2"), () => [])).outcome, "applied");
  assert.deepEqual(await effects(), {});
});

test("knows statements and words of another copy of the package", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const file = await bundle(join(import.meta.dirname, "../../src/index.ts"));
  const copy = (await import(pathToFileURL(file).href)) as typeof Package;
  assert.notEqual(copy.sql, sql);
  assert.notEqual(copy.PermanentError, PermanentError);
  const outcomes = await inbox.processBatch(
    ["m1", "m2", "m3", "m4"].map((id) => message(id)),
    ({ id }) => {
      if (id === "m2") return copy.quarantine("no");
      if (id === "m3") return copy.retryIn(5);
      if (id === "m4") throw new copy.PermanentError("no");
      return copy.sql`insert into effect (message_id) values (${id})`;
    },
  );
  assert.deepEqual(outcomesOf(outcomes), ["applied", "rejected", "failed", "rejected"]);
  assert.deepEqual(await effects(), { m1: 1 });
});

test("claims duplicates in full batches from the start", async (t) => {
  const { inboxWith } = await testInbox(t);
  const consumer = "again";
  const messages = Array.from({ length: 2_000 }, (_, i) => message(`m${i}`, { key: `k${i % 9}` }));
  await inboxWith({ consumer }).processBatch(messages, () => undefined);
  const claims = listen<{ consumer: string; size: number }>(t, "claimed", consumer);
  const outcomes = outcomesOf(
    await inboxWith({ consumer, lanes: 1 }).processBatch(messages, () => undefined),
  );
  assert.deepEqual(new Set(outcomes), new Set(["duplicate"]));
  // 4, 16, 64, 256, then 500 at a time.
  assert.ok(claims.length <= 9, `${claims.length} transactions`);
});

test("uses no savepoint", async (t) => {
  const { store, inboxWith } = await testInbox(t);
  const texts: string[] = [];
  const spying = inboxWith({
    store: {
      ...store,
      async begin(name, options) {
        const tx = await store.begin(name, options);
        return {
          ...tx,
          query(statement) {
            texts.push(statement.text);
            return tx.query(statement);
          },
        };
      },
    },
  });
  const failing: MessageHandler = (received) => {
    if (received.id === "m7") throw new Error("no");
    return recordStatement(received, undefined as never);
  };
  await spying.processBatch(
    Array.from({ length: 40 }, (_, i) => message(`m${i}`, { key: "k" })),
    failing,
  );
  assert.ok(texts.length >= 39);
  assert.deepEqual(
    texts.filter((text) => /savepoint/i.test(text)),
    [],
  );
});

test("never lets two handlers of one lane overlap, and keeps the order of a key around a failure", async (t) => {
  const { inbox, pool } = await testInbox(t, { lanes: 3 });
  const running = new Map<string, number>();
  const handler: MessageHandler = async ({ id, key }, { tx }) => {
    const lane = key ?? "";
    running.set(lane, (running.get(lane) ?? 0) + 1);
    assert.equal(running.get(lane), 1);
    try {
      await tx.query("insert into effect (message_id, at) values ($1, clock_timestamp())", [id]);
      if (id === "k1-13") throw new Error("no");
    } finally {
      running.set(lane, 0);
    }
  };
  const messages = Array.from({ length: 300 }, (_, i) => message(`k${i % 3}-${i}`, { key: `k${i % 3}` }));
  await inbox.processBatch(messages, handler);
  const { rows } = await pool.query<{ message_id: string }>("select message_id from effect order by at");
  for (const key of ["k0", "k1", "k2"]) {
    const applied = rows.map((row) => row.message_id).filter((id) => id.startsWith(key));
    const sent = messages.map(({ id }) => id).filter((id) => id.startsWith(key) && id !== "k1-13");
    assert.deepEqual(applied, sent);
  }
});

test("does not lose an update of read-modify-write handlers on one key", async (t) => {
  const { inbox, pool } = await testInbox(t);
  await pool.query("insert into account (id) values (1)");
  const handler: MessageHandler = async (_, { tx }) => {
    const { rows } = await tx.query<{ balance: string }>("select balance from account where id = 1");
    await tx.query("update account set balance = $1 where id = 1", [Number(rows[0]?.balance) + 1]);
  };
  await inbox.processBatch(
    Array.from({ length: 200 }, (_, i) => message(`m${i}`, { key: "account-1" })),
    handler,
  );
  assert.deepEqual((await pool.query("select balance::int from account")).rows, [{ balance: 200 }]);
});

test("learns how slow a handler is and keeps its transactions short", async (t) => {
  const { inboxWith, effects } = await testInbox(t);
  const consumer = "slow";
  const commits = listen<{ consumer: string; size: number }>(t, "committed", consumer);
  let delayMs = 0;
  const handler: MessageHandler = async (received, context) => {
    await context.tx.query("select pg_sleep($1::float / 1000)", [delayMs]);
    await recordEffect(received, context);
  };
  const slow = inboxWith({ consumer, lanes: 1, maxTransactionMs: 400 });
  const some = (name: string, n: number) =>
    Array.from({ length: n }, (_, i) => message(`${name}${i}`, { key: "k" }));
  await slow.processBatch(some("fast", 400), handler);
  const before = commits.length;
  assert.ok(Math.max(...commits.map(({ size }) => size)) > 16);
  delayMs = 80;
  await slow.processBatch(some("slow", 40), handler);
  const sizes = commits.slice(before).map(({ size }) => size);
  // Even the first one stops early (looked at every 8 messages) and gives the rest of its claims back.
  assert.ok(Math.max(...sizes) <= 16, sizes.join(" "));
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    40,
  );
  assert.deepEqual(new Set(Object.values(await effects())), new Set([1]));
});

test("starts at one message without a key, grows while nothing is in the way, and gets through a storm of crossing locks", async (t) => {
  const { inboxWith, pool } = await testInbox(t);
  const consumer = "unkeyed";
  const commits = listen<{ consumer: string; size: number }>(t, "committed", consumer);
  await pool.query("insert into account (id) select generate_series(1, 20)");
  const inbox = inboxWith({ consumer, lanes: 4 });
  const handler: MessageHandler = async ({ id }, { tx }) => {
    await tx.query("update account set balance = balance + 1 where id = $1", [
      1 + ((Number(id.slice(1)) * 7) % 20),
    ]);
  };
  const outcomes = await inbox.processBatch(
    Array.from({ length: 600 }, (_, i) => message(`m${i}`)),
    handler,
  );
  assert.deepEqual(new Set(outcomesOf(outcomes)), new Set(["applied"]));
  assert.equal(commits[0]?.size, 1);
  assert.deepEqual((await pool.query("select sum(balance)::int as sum from account")).rows, [{ sum: 600 }]);
  const free = await inbox.processBatch(
    Array.from({ length: 2_000 }, (_, i) => message(`f${i}`)),
    () => undefined,
  );
  assert.deepEqual(new Set(outcomesOf(free)), new Set(["applied"]));
  assert.ok(Math.max(...commits.map(({ size }) => size)) > 4);
});

test("gives an unreadable message its quarantine and its neighbours their effect", async (t) => {
  const { inbox, effects, quarantined } = await testInbox(t);
  const outcomes = await inbox.processBatch(
    [
      message("m1"),
      message("", { payload: "no id" }),
      message("a\0b"),
      message("id-\ud800"),
      message("id-\ud801"),
      message("x".repeat(1_025)),
      { payload: "nothing else" } as never,
      message("m2", { producer: "" }),
      message("m3", { payload: null }),
    ],
    recordEffect,
  );
  assert.deepEqual(outcomesOf(outcomes), ["applied", ...Array<string>(7).fill("rejected"), "applied"]);
  assert.deepEqual(await effects(), { m1: 1, m3: 1 });
  const codes = (await quarantined()).map(({ code }) => code).sort();
  assert.deepEqual(codes, [
    "identity-too-long",
    ...Array<string>(3).fill("invalid-identity"),
    ...Array<string>(3).fill("no-identity"),
  ]);
});

test(
  "gives every message of any batch the right outcome and every effect once",
  { timeout: 120_000 },
  async (t) => {
    const { inboxWith, pool } = await testInbox(t, { retry: { delayMs: 10, maxAttempts: 2 } });
    type Kind = "new" | "failing" | "permanent" | "invalid";
    const delivery = fc.record({
      id: fc.integer({ min: 0, max: 25 }),
      body: fc.constantFrom("a", "a", "a", "b"),
      keyed: fc.boolean(),
    });
    const kindOf = (id: number): Kind =>
      id % 9 === 4 ? "failing" : id % 9 === 5 ? "permanent" : id % 9 === 7 ? "invalid" : "new";
    const form = fc.constantFrom<"tx" | "statements" | "set">("tx", "statements", "set");
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(delivery, { maxLength: 40 }), { minLength: 1, maxLength: 3 }),
        form,
        async (batches, shape) => {
          const consumer = `property-${run++}`;
          await pool.query("truncate effect");
          const inbox = inboxWith({ consumer, lanes: 3 });
          const name = (id: number): string =>
            kindOf(id) === "invalid" ? `bad\0${id}` : `${consumer}-${id}`;
          const kindOfMessage = ({ id }: Message): Kind => kindOf(Number(id.slice(consumer.length + 1)));
          const refuse = (received: Message): void => {
            if (kindOfMessage(received) === "failing") throw new Error("no");
            if (kindOfMessage(received) === "permanent") throw new PermanentError("never");
          };
          const handlers: Record<string, Handler> = {
            async tx(received: Message, context: Parameters<MessageHandler>[1]) {
              await recordEffect(received, context);
              refuse(received);
            },
            statements(received: Message) {
              refuse(received);
              return recordStatement(received, undefined as never);
            },
            set: batch((messages: readonly Message[]) => {
              messages.forEach(refuse);
              return sql`insert into effect (message_id) select unnest(${messages.map(({ id }) => id)}::text[])`;
            }),
          };
          // What the world should look like: the body that was applied or kept first, and failed attempts, by id.
          const first = new Map<number, string>();
          const allowed: Record<Kind, readonly string[]> = {
            new: ["applied", "duplicate", "conflict"],
            failing: ["failed", "busy", "rejected", "stored", "conflict"],
            permanent: ["rejected", "stored", "conflict"],
            invalid: ["rejected"],
          };
          for (const deliveries of batches) {
            const processed = await inbox.processBatch(
              deliveries.map(({ id, body, keyed }) =>
                message(name(id), { payload: body, key: keyed ? `k${id}` : undefined }),
              ),
              handlers[shape] as MessageHandler,
            );
            processed.forEach(({ outcome, settle }, i) => {
              const { id, body } = deliveries[i] as (typeof deliveries)[number];
              const kind = kindOf(id);
              assert.ok(allowed[kind].includes(outcome), `${kind} was ${outcome}`);
              assert.equal(settle, outcome === "failed" || outcome === "busy" ? "retry" : "ack");
              if (outcome === "applied") {
                assert.equal(first.has(id), false, "applied twice");
                first.set(id, body);
              }
              if (outcome === "duplicate") assert.equal(first.get(id), body);
              if (outcome === "conflict" && kind === "new") assert.notEqual(first.get(id), body);
            });
          }
          const { rows } = await pool.query<{ message_id: string }>(
            "select message_id from effect order by message_id",
          );
          assert.deepEqual(
            rows.map((row) => row.message_id),
            [...first.keys()].map(name).sort(),
          );
          const delivered = new Set(
            batches
              .flat()
              .map(({ id }) => id)
              .filter((id) => kindOf(id) === "new"),
          );
          assert.deepEqual(new Set(first.keys()), delivered);
          const unsettled = await pool.query(
            "select count(*)::int as n from message where consumer = $1 and processed_at is null and not exists (select from quarantine q where q.digest = message.digest)",
            [consumer],
          );
          assert.deepEqual(unsettled.rows, [{ n: 0 }]);
        },
      ),
      { numRuns: 40 },
    );
  },
);
