import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { PermanentError, postgres, quarantine, retryIn, type MessageHandler } from "../../src/index.ts";
import { codeOf } from "../../src/errors.ts";
import { testPool } from "../support/postgres.ts";
import { gate, message, recordEffect, testInbox } from "./support.ts";

test("applies a message once when it comes twice in a row", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const first = await inbox.process(message("m1"), recordEffect);
  const second = await inbox.process(message("m1"), recordEffect);
  assert.deepEqual([first.outcome, first.settle], ["applied", "ack"]);
  assert.deepEqual([second.outcome, second.settle], ["duplicate", "ack"]);
  assert.deepEqual(await effects(), { m1: 1 });
});

test("applies a message once when many workers get it at the same time (CLM-01)", async (t) => {
  const { url, schema, inboxWith, effects } = await testInbox(t);
  // Each worker has a pool of its own, so nothing but the database can tell them apart.
  const workers = await Promise.all(
    Array.from({ length: 12 }, async () =>
      inboxWith({ store: postgres(await testPool(t, { url, schema, max: 2 }), { schema }) }),
    ),
  );
  const outcomes = await Promise.all(workers.map((worker) => worker.process(message("m1"), recordEffect)));
  assert.equal(outcomes.filter(({ outcome }) => outcome === "applied").length, 1);
  for (const { outcome, settle } of outcomes) {
    assert.ok(["applied", "duplicate", "busy"].includes(outcome), outcome);
    assert.equal(settle, outcome === "busy" ? "retry" : "ack");
  }
  const again = await Promise.all(workers.map((worker) => worker.process(message("m1"), recordEffect)));
  assert.deepEqual(new Set(again.map(({ outcome }) => outcome)), new Set(["duplicate"]));
  assert.deepEqual(await effects(), { m1: 1 });
});

test("takes nothing when the handler throws between claim and effect, and applies on the next delivery", async (t) => {
  const { inbox, effects } = await testInbox(t);
  let calls = 0;
  const failingOnce: MessageHandler = async (received, context) => {
    calls++;
    if (calls === 1) throw new Error("not yet");
    await recordEffect(received, context);
  };
  const first = await inbox.process(message("m1"), failingOnce);
  assert.deepEqual([first.outcome, first.settle, first.attempts], ["failed", "retry", 1]);
  assert.equal(first.error?.message, "not yet");
  assert.deepEqual(await effects(), {});
  assert.equal((await inbox.process(message("m1"), failingOnce)).outcome, "applied");
  assert.deepEqual(await effects(), { m1: 1 });
});

test("rolls back what the handler wrote before it threw", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const result = await inbox.process(message("m1"), async (received, context) => {
    await recordEffect(received, context);
    throw new Error("after the write");
  });
  assert.equal(result.outcome, "failed");
  assert.deepEqual(await effects(), {});
});

test("keeps the same id with another payload in quarantine and leaves the first applied", async (t) => {
  const { inbox, effects, quarantined } = await testInbox(t);
  await inbox.process(message("m1", { payload: "first" }), recordEffect);
  const result = await inbox.process(message("m1", { payload: "second" }), recordEffect);
  assert.deepEqual([result.outcome, result.settle], ["conflict", "ack"]);
  assert.equal((result.error as { code?: string }).code, "payload-conflict");
  assert.deepEqual(await effects(), { m1: 1 });
  const entries = await quarantined();
  assert.equal(entries.length, 1);
  assert.equal(entries[0]?.code, "payload-conflict");
  assert.equal(entries[0]?.payload?.toString(), "second");
});

test("counts the same conflicting body on one entry, and keeps a third body beside it", async (t) => {
  const { inbox, store } = await testInbox(t);
  await inbox.process(message("m1", { payload: "first" }), recordEffect);
  for (const payload of ["second", "second", "third"]) {
    assert.equal((await inbox.process(message("m1", { payload }), recordEffect)).outcome, "conflict");
  }
  const rows = await store.quarantined.list({});
  assert.deepEqual(rows.map((row) => row.deliveries).sort(), [1, 2]);
});

test("writes the effect row of an ambiguous dispatch once: the effect commits with the claim", async (t) => {
  // The dispatcher's own timeout belongs to the outbox; what the inbox owes it is one effect row to dispatch from.
  const { inbox, effects } = await testInbox(t);
  const ambiguous = await inbox.process(message("m1"), async (received, context) => {
    await recordEffect(received, context);
    throw Object.assign(new Error("no answer in time"), { code: "ETIMEDOUT" });
  });
  assert.deepEqual([ambiguous.outcome, ambiguous.attempts], ["failed", undefined]);
  await inbox.process(message("m1"), recordEffect);
  await inbox.process(message("m1"), recordEffect);
  assert.deepEqual(await effects(), { m1: 1 });
});

test("parks a message whose identity was forgotten before its redrive", async (t) => {
  const { inbox, store, pool, quarantined, effects } = await testInbox(t);
  const redriven = message("m1", { time: new Date(Date.now() - 60_000) });
  assert.equal((await inbox.process(redriven, recordEffect)).outcome, "applied");
  await store.retention.setWindow({ consumer: "accounting" }, 1);
  await store.retention.advance({ consumer: "accounting" }, { skewMs: 0 });
  await pool.query("delete from message");
  const { outcome, settle, error } = await inbox.process(redriven, recordEffect);
  assert.deepEqual([outcome, settle, codeOf(error)], ["late", "ack", "late"]);
  assert.deepEqual(await effects(), { m1: 1 });
  assert.deepEqual(
    (await quarantined()).map(({ code, message_id, payload }) => [code, message_id, payload?.toString()]),
    [["late", "m1", '{"id":"m1"}']],
  );
});

test("does not run again what an older handler version applied", async (t) => {
  const { inboxWith, effects, pool } = await testInbox(t);
  await inboxWith({ handlerVersion: "1" }).process(message("m1"), recordEffect);
  const replay = await inboxWith({ handlerVersion: "2" }).process(message("m1"), recordEffect);
  assert.equal(replay.outcome, "duplicate");
  assert.deepEqual(await effects(), { m1: 1 });
  const { rows } = await pool.query("select handler_version from message");
  assert.deepEqual(rows, [{ handler_version: "1" }]);
});

test("runs one event for each of two consumers that share a database (CLM-15)", async (t) => {
  const { inboxWith, effects } = await testInbox(t);
  for (const consumer of ["billing", "shipping"]) {
    assert.equal((await inboxWith({ consumer }).process(message("e1"), recordEffect)).outcome, "applied");
  }
  assert.deepEqual(await effects(), { e1: 2 });
});

test("keeps tenants and producers apart, also without a tenant (CLM-07)", async (t) => {
  const { inbox, pool } = await testInbox(t);
  const copies = [{ tenant: "" }, { tenant: "a" }, { tenant: "b" }, { producer: "other" }];
  for (const copy of copies) {
    assert.equal((await inbox.process(message("m1", copy), recordEffect)).outcome, "applied");
    assert.equal((await inbox.process(message("m1", copy), recordEffect)).outcome, "duplicate");
  }
  const { rows } = await pool.query(
    `select column_name from information_schema.columns
      where table_schema = current_schema() and table_name = 'message' and is_nullable = 'YES'`,
  );
  assert.deepEqual(rows, [{ column_name: "processed_at" }]);
});

test("leaves the ledger's row untouched by duplicates (CLM-05)", async (t) => {
  const { inbox, pool } = await testInbox(t);
  await inbox.process(message("m1"), recordEffect);
  const row = () =>
    pool
      .query<Record<string, string>>("select ctid::text, xmin::text, xmax::text from message")
      .then(({ rows }) => rows);
  const before = await row();
  for (let i = 0; i < 100; i++) await inbox.process(message("m1"), recordEffect);
  assert.deepEqual(await row(), before);
});

test("answers busy while another process runs the first copy, and applies it after that one failed (CLM-03)", async (t) => {
  const { url, schema, inbox, inboxWith, effects } = await testInbox(t);
  const other = inboxWith({
    store: postgres(await testPool(t, { url, schema }), { schema }),
    claimLockTimeoutMs: 20,
  });
  const started = gate();
  const finish = gate();
  const first = inbox.process(message("m1"), async () => {
    started.open();
    await finish.opened;
    throw new Error("the first copy fails");
  });
  await started.opened;
  const second = await other.process(message("m1"), recordEffect);
  assert.deepEqual([second.outcome, second.settle], ["busy", "retry"]);
  finish.open();
  assert.equal((await first).outcome, "failed");
  assert.equal((await other.process(message("m1"), recordEffect)).outcome, "applied");
  assert.deepEqual(await effects(), { m1: 1 });
});

test("lets other messages through while copies of a slow one arrive (CLM-06)", async (t) => {
  const { inbox, effects } = await testInbox(t, { lanes: 2 }, { max: 3 });
  const started = gate();
  const finish = gate();
  const slow: MessageHandler = async (received, context) => {
    started.open();
    await finish.opened;
    await recordEffect(received, context);
  };
  const copies = [inbox.process(message("m1"), slow)];
  await started.opened;
  for (let i = 0; i < 20; i++) copies.push(inbox.process(message("m1"), slow));
  assert.equal((await inbox.process(message("m2"), recordEffect)).outcome, "applied");
  finish.open();
  const outcomes = (await Promise.all(copies)).map(({ outcome }) => outcome);
  assert.deepEqual(outcomes, ["applied", ...Array<string>(20).fill("duplicate")]);
  assert.deepEqual(await effects(), { m1: 1, m2: 1 });
});

test("answers copies with another payload as conflicts when they follow one in the same process", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const outcomes = await Promise.all(
    ["a", "a", "b", "b"].map((payload) => inbox.process(message("m1", { payload }), recordEffect)),
  );
  assert.deepEqual(
    outcomes.map(({ outcome }) => outcome),
    ["applied", "duplicate", "conflict", "conflict"],
  );
  assert.deepEqual(await effects(), { m1: 1 });
});

for (const isolation of ["repeatable read", "serializable"] as const) {
  test(`counts no attempt for duplicates that race at ${isolation} (CLM-04)`, async (t) => {
    const { url, schema, inboxWith, effects, pool } = await testInbox(t);
    const workers = await Promise.all(
      Array.from({ length: 6 }, async () =>
        inboxWith({ isolation, store: postgres(await testPool(t, { url, schema, max: 2 }), { schema }) }),
      ),
    );
    for (let round = 0; round < 5; round++) {
      const copy = message(`m${round}`);
      let open = workers;
      // A busy copy is delivered again, as a broker would.
      for (let tries = 0; open.length > 0 && tries < 50; tries++) {
        const outcomes = await Promise.all(open.map((worker) => worker.process(copy, recordEffect)));
        assert.deepEqual(
          outcomes.filter(({ outcome }) => outcome === "failed"),
          [],
        );
        open = open.filter((_, i) => outcomes[i]?.settle === "retry");
      }
      assert.equal(open.length, 0);
    }
    assert.deepEqual(await effects(), { m0: 1, m1: 1, m2: 1, m3: 1, m4: 1 });
    const { rows } = await pool.query("select count(*)::int as n from attempt");
    assert.deepEqual(rows, [{ n: 0 }]);
  });
}

test("retries a deadlock of two handlers without counting it", async (t) => {
  const { inbox, pool } = await testInbox(t);
  await pool.query("insert into account (id) values (1), (2)");
  const both = gate();
  let arrived = 0;
  const transfer =
    (from: number, to: number): MessageHandler =>
    async (_, { tx }) => {
      await tx.query("update account set balance = balance - 1 where id = $1", [from]);
      if (++arrived === 2) both.open();
      if (arrived <= 2) await both.opened;
      await tx.query("update account set balance = balance + 1 where id = $1", [to]);
    };
  const results = await Promise.all([
    inbox.process(message("m1"), transfer(1, 2)),
    inbox.process(message("m2"), transfer(2, 1)),
  ]);
  assert.deepEqual(
    results.map(({ outcome }) => outcome),
    ["applied", "applied"],
  );
  const { rows } = await pool.query(
    "select (select sum(balance)::int from account) as sum, (select count(*)::int from attempt) as attempts",
  );
  assert.deepEqual(rows, [{ sum: 0, attempts: 0 }]);
});

test("counts attempts across rollbacks, instances and failures at COMMIT, then quarantines (RTY-01, RTY-02, POI-02)", async (t) => {
  const { inboxWith, quarantined, pool, effects } = await testInbox(t, {
    retry: { delayMs: 10, maxAttempts: 3 },
  });
  await pool.query("create table child (parent int references account (id) deferrable initially deferred)");
  const failing: MessageHandler[] = [
    () => Promise.reject(new Error("thrown")),
    async (_, { tx }) => void (await tx.query("select 1 / 0")),
    async (_, { tx }) => void (await tx.query("insert into child values (404)")),
  ];
  const outcomes = [];
  for (const handler of failing) outcomes.push(await inboxWith({}).process(message("p1"), handler));
  assert.deepEqual(
    outcomes.map(({ outcome, attempts }) => [outcome, attempts]),
    [
      ["failed", 1],
      ["failed", 2],
      ["rejected", 3],
    ],
  );
  const [entry] = await quarantined();
  assert.deepEqual([entry?.code, entry?.message_id, entry?.attempts], ["attempts-exhausted", "p1", 3]);
  const again = await inboxWith({}).process(message("p1"), recordEffect);
  assert.deepEqual([again.outcome, again.settle], ["stored", "ack"]);
  assert.deepEqual(await effects(), {});
});

test("waits longer after each failed attempt, within the cap", async (t) => {
  const { inboxWith } = await testInbox(t);
  const inbox = inboxWith({
    retry: { delayMs: 100, maxDelayMs: 350, maxAttempts: 9 },
    random: () => 1,
  });
  const delays = [];
  for (let i = 0; i < 4; i++) {
    delays.push((await inbox.process(message("m1"), () => Promise.reject(new Error("no")))).retryAfterMs);
  }
  assert.deepEqual(delays, [100, 200, 350, 350]);
});

test("quarantines at once what the handler calls permanent, by error, by cause and by word", async (t) => {
  const { inbox, quarantined, effects } = await testInbox(t);
  const permanent: MessageHandler[] = [
    () => Promise.reject(new PermanentError("unknown account")),
    () => Promise.reject(new Error("wrapped", { cause: new PermanentError("unknown account") })),
    async (received, context) => {
      await recordEffect(received, context);
      return quarantine("unknown account");
    },
  ];
  for (const [i, handler] of permanent.entries()) {
    const result = await inbox.process(message(`m${i}`), handler);
    assert.deepEqual([result.outcome, result.settle], ["rejected", "ack"]);
  }
  assert.deepEqual(
    (await quarantined()).map(({ code }) => code),
    Array(3).fill("handler-rejected"),
  );
  assert.deepEqual(await effects(), {});
});

test("defers without counting when the handler says retryIn", async (t) => {
  const { inbox, effects, pool } = await testInbox(t);
  const result = await inbox.process(message("m1"), async (received, context) => {
    await recordEffect(received, context);
    return retryIn(1_234);
  });
  assert.deepEqual([result.outcome, result.retryAfterMs, result.attempts], ["failed", 1_234, undefined]);
  assert.deepEqual(await effects(), {});
  const { rows } = await pool.query("select count(*)::int as n from attempt");
  assert.deepEqual(rows, [{ n: 0 }]);
});

test("interrupts a handler that takes too long, and seals its tx (DRV-08)", async (t) => {
  const { inbox, effects } = await testInbox(t, { handlerTimeoutMs: 50 });
  const late = gate();
  let use: Promise<unknown> = Promise.resolve();
  const result = await inbox.process(message("m1"), async (received, { tx, signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    use = Promise.resolve()
      .then(() => sleep(1))
      .then(() => tx.query("insert into effect (message_id) values ($1)", [received.id]));
    use.then(late.open, late.open);
    await late.opened;
  });
  assert.deepEqual(
    [result.outcome, (result.error as { code?: string }).code, result.attempts],
    ["failed", "handler-timeout", 1],
  );
  await assert.rejects(use, { code: "transaction-sealed" });
  assert.deepEqual(await effects(), {});
});

test("gives the handler's result to the caller that applied it", async (t) => {
  const { inbox } = await testInbox(t);
  assert.equal((await inbox.process(message("m1"), () => 42)).result, 42);
  assert.equal((await inbox.process(message("m1"), () => 42)).result, undefined);
});

test("survives an error that cannot be printed, a thrown nothing, and a circle of causes", async (t) => {
  const { inbox, quarantined } = await testInbox(t, { retry: { maxAttempts: 1 } });
  const circle = new Error("circle");
  circle.cause = circle;
  const thrown: unknown[] = [
    undefined,
    null,
    "text",
    circle,
    Object.create(null),
    new Error(`NUL \0 and \ud800 and ${"long ".repeat(100_000)}`),
    {
      get message() {
        throw new Error("getter");
      },
      get code() {
        throw new Error("getter");
      },
    },
  ];
  for (const [i, value] of thrown.entries()) {
    const result = await inbox.process(message(`m${i}`), () => Promise.reject(value as Error));
    assert.equal(result.outcome, "rejected", `thrown[${i}]: ${result.outcome} ${String(result.error)}`);
  }
  assert.equal((await quarantined()).length, thrown.length);
});
