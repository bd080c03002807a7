import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOf } from "../../src/errors.ts";
import { quarantine } from "../../src/inbox/handler.ts";
import { createQuarantine } from "../../src/quarantine/quarantine.ts";
import type { Delivery, Intake, Settlement, Source } from "../../src/sources/source.ts";
import type { MessageInput } from "../../src/message/message.ts";
import { createMessage } from "../../src/message/create-message.ts";
import { gate, message, recordEffect, testInbox, type TestInbox } from "./support.ts";

const longAgo = new Date(Date.now() - 3_600_000);
const old = (id: string, more: Partial<MessageInput> = {}): MessageInput =>
  message(id, { time: longAgo, ...more });
const decider = { by: "ann", why: "the books say that it is missing" };

async function withHorizon(...given: Parameters<typeof testInbox>): Promise<TestInbox> {
  const tested = await testInbox(...given);
  await tested.store.retention.setWindow({ consumer: "accounting" }, 1);
  await tested.store.retention.advance({ consumer: "accounting" }, { skewMs: 0 });
  return tested;
}

const codes = async ({ quarantined }: TestInbox): Promise<readonly unknown[]> =>
  (await quarantined()).map(({ code, message_id: id }) => [code, id]);

test("a late message among others is kept, and the others are applied", async (t) => {
  const tested = await withHorizon(t);
  const { inbox, effects } = tested;
  const answers = await inbox.processBatch([message("a"), old("b"), message("c"), old("b")], recordEffect);
  assert.deepEqual(
    answers.map(({ outcome, settle }) => [outcome, settle]),
    [
      ["applied", "ack"],
      ["late", "ack"],
      ["applied", "ack"],
      ["stored", "ack"],
    ],
  );
  assert.deepEqual(await effects(), { a: 1, c: 1 });
  assert.deepEqual(await codes(tested), [["late", "b"]]);
  assert.equal((await inbox.process(old("b"), recordEffect)).outcome, "stored");
});

test("a late message waits for nobody's key and lets its key go on", async (t) => {
  const { inbox, effects } = await withHorizon(t);
  const source = sourceOf([old("k1", { key: "k" }), message("k2", { key: "k" })]);
  const run = inbox.run(source, recordEffect);
  await run.finished;
  assert.deepEqual(run.stats().outcomes.late, 1);
  assert.deepEqual(source.settled(), [{ kind: "ack", quarantined: true }, { kind: "ack" }]);
  assert.deepEqual(await effects(), { k2: 1 });
});

test("without the producer's time the broker's decides, and of two the earlier one", async (t) => {
  const { inbox, effects } = await withHorizon(t);
  const ahead = new Date(Date.now() + 3_600_000);
  const source = sourceOf([message("broker"), message("ahead", { time: ahead }), message("neither")], (id) =>
    id === "neither" ? undefined : longAgo.getTime(),
  );
  const run = inbox.run(source, recordEffect);
  await run.finished;
  assert.equal(run.stats().outcomes.late, 2);
  assert.deepEqual(await effects(), { neither: 1 });
});

test("a late message is not run in a transaction of the caller's either, and is kept though that is rolled back", async (t) => {
  const tested = await withHorizon(t);
  const { inbox, pool } = tested;
  for (const [id, use] of [
    ["process", (tx: unknown) => inbox.processInTransaction(tx, old("process"), () => assert.fail("it ran"))],
    ["accept", (tx: unknown) => inbox.acceptInTransaction(tx, old("accept"))],
  ] as const) {
    const client = await pool.connect();
    await client.query("begin");
    const { outcome, error } = await use(client);
    assert.deepEqual([outcome, codeOf(error)], ["late", "late"], id);
    await client.query("rollback");
    client.release();
  }
  assert.deepEqual(await codes(tested), [
    ["late", "process"],
    ["late", "accept"],
  ]);
});

test("stored first, a late message is kept for a decision and no worker gets it", async (t) => {
  const tested = await withHorizon(t);
  const answers = await tested.inbox.accept([old("a"), message("b")]);
  assert.deepEqual(
    answers.map(({ outcome }) => outcome),
    ["late", "stored"],
  );
  const { rows } = await tested.pool.query("select message_id from pending");
  assert.deepEqual(rows, [{ message_id: "b" }]);
});

test("what is late is applied once by decision, though two people decide, it comes again, and its handler fails once", async (t) => {
  const tested = await withHorizon(t);
  const { inbox, store, effects } = tested;
  await inbox.process(old("m"), recordEffect);
  const quarantine = createQuarantine({ store });
  const [entry] = await quarantine.list();
  await assert.rejects(quarantine.retry(entry!.id, decider), {
    code: "decision-needs",
    message: /inbox quarantine apply/,
  });
  const decisions = await Promise.allSettled([
    quarantine.apply(entry!.id, decider),
    quarantine.apply(entry!.id, decider),
  ]);
  assert.deepEqual(decisions.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  let attempts = 0;
  const applied = gate();
  const work = inbox.work(async (received, context) => {
    attempts += 1;
    if (attempts === 1) throw new Error("not yet");
    await recordEffect(received, context);
    applied.open();
  });
  const again = await Promise.all([1, 2, 3].map(() => inbox.process(old("m"), recordEffect)));
  await applied.opened;
  await work.stop();
  for (const { outcome } of again) assert.ok(outcome === "stored" || outcome === "duplicate", outcome);
  assert.deepEqual(await effects(), { m: 1 });
  const decided = await quarantine.entry(entry!.id);
  assert.deepEqual([decided?.status, decided?.decision?.kind], ["retried", "apply"]);
});

const failures: Readonly<Record<string, (message: string) => unknown>> = {
  "put off": (text) => Promise.reject(new Error(text)),
  "out of attempts": (text) => Promise.reject(new Error(text)),
  permanent: (text) => Promise.reject(Object.assign(new Error(text), { permanent: true })),
  refused: (text) => quarantine(text),
};

test("what fails while its handler ran beyond the horizon is late however it failed, and does not run again", async (t) => {
  const tested = await testInbox(t);
  const { inboxWith, store, pool, effects } = tested;
  for (const [consumer, fail] of Object.entries(failures)) {
    const retry = { delayMs: 10, maxAttempts: consumer === "out of attempts" ? 1 : 10 };
    const inbox = inboxWith({ consumer, retry });
    let runs = 0;
    const failing = inbox.run(sourceOf([old(consumer, { key: "k" })]), async () => {
      runs++;
      // It was new when it was claimed.
      await store.retention.setWindow({ consumer }, 1);
      await store.retention.advance({ consumer }, { skewMs: 0 });
      return fail("no such account");
    });
    await failing.finished;
    assert.deepEqual([failing.stats().outcomes.late, runs], [1, 1], consumer);
    // Nothing of its key waits for it.
    await inbox.run(sourceOf([message(`${consumer} next`, { key: "k" })]), recordEffect).finished;
    const again = await inbox.process(old(consumer), recordEffect);
    assert.equal(again.outcome, "stored", consumer);
  }
  const names = Object.keys(failures);
  assert.deepEqual(await effects(), Object.fromEntries(names.map((id) => [`${id} next`, 1])));
  assert.deepEqual((await pool.query("select from pending union all select from parked_key")).rows, []);
  assert.deepEqual(
    await codes(tested),
    names.map((id) => ["late", id]),
  );
});

test("a retry of many leaves out what is late, and an apply of many all else", async (t) => {
  const { inbox, store } = await withHorizon(t);
  await inbox.process(old("late1"), recordEffect);
  await inbox.process(old("late2"), recordEffect);
  await inbox.process(message("bad"), () => {
    throw Object.assign(new Error("no"), { permanent: true });
  });
  const quarantine = createQuarantine({ store });
  const open = await quarantine.count({ status: "open" });
  const recorded = await quarantine.retryMany({}, { ...decider, expected: open });
  const retried = await quarantine.carryOn(recorded.id);
  assert.deepEqual([retried.decided, retried.skipped], [open - 2, 2]);
  await assert.rejects(quarantine.applyMany({}, { ...decider, expected: 3 }), { code: "count-changed" });
  const applied = await quarantine.applyMany({}, { ...decider, expected: 2 });
  assert.equal((await quarantine.carryOn(applied.id)).decided, 2);
});

test("an entry that is not late is not applied but retried", async (t) => {
  const { inbox, store } = await withHorizon(t);
  await inbox.process(message("m"), () => ({ outcome: "quarantine" }) as never);
  const quarantine = createQuarantine({ store });
  for (const { id } of await quarantine.list()) {
    await assert.rejects(quarantine.apply(id, decider), { code: "decision-needs", message: /retry it/ });
  }
});

/** A source with these messages, once. */
function sourceOf(
  messages: readonly MessageInput[],
  brokerTime: (id: string) => number | undefined = () => undefined,
): Source & { settled(): readonly Settlement[] } {
  const settled = new Map<string, Settlement>();
  return {
    name: "test",
    async start(intake: Intake) {
      const deliveries = messages.map((given): Delivery => {
        const received = createMessage(given);
        return { received, redelivered: false, brokerTime: brokerTime(given.id) };
      });
      await intake.deliver(deliveries);
      intake.end();
    },
    settle(list) {
      for (const [{ received }, settlement] of list)
        settled.set("id" in received ? received.id : "", settlement);
      return Promise.resolve();
    },
    stop: () => Promise.resolve(),
    close: () => Promise.resolve(),
    settled: () => messages.map(({ id }) => settled.get(id)!),
  };
}

test("where ids carry their time it counts, in a run, in your own transaction and for what is stored for later", async (t) => {
  const { inbox, pool, effects } = await withHorizon(t, { idTime: "uuidv7" });
  const idAt = (ms: number, n: number): string =>
    `${ms
      .toString(16)
      .padStart(12, "0")
      .replace(/(.{8})/, "$1-")}-7000-8000-${String(n).padStart(12, "0")}`;
  const was = (n: number): string => idAt(longAgo.getTime(), n);
  const young = idAt(Date.now() + 3_600_000, 1);
  const answers = await inbox.processBatch(
    [was(1), young, "no-time"].map((id) => message(id)),
    recordEffect,
  );
  assert.deepEqual(
    answers.map(({ outcome }) => outcome),
    ["late", "applied", "applied"],
  );
  assert.equal((await inbox.accept(message(was(2)))).outcome, "late");
  const client = await pool.connect();
  try {
    await client.query("begin");
    const joined = await inbox.processInTransaction(client, message(was(3)), () => undefined);
    await client.query("commit");
    assert.equal(joined.outcome, "late");
  } finally {
    client.release();
  }
  assert.deepEqual(await effects(), { [young]: 1, "no-time": 1 });
});
