import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { createOutboxConsole, type OutboxConsole } from "../../src/outbox/console.ts";
import { refused, sent, type Destination } from "../../src/relay/relay.ts";
import { InboxError } from "../../src/errors.ts";
import type { Scope } from "../support/cleanup.ts";
import { effect, startRelay, until } from "../relay/support.ts";
import { testOutbox, type TestOutbox } from "./support.ts";

const ann = { by: "ann", why: "the account is there now" };

interface Place extends TestOutbox {
  readonly desk: OutboxConsole;
  /** Ids and payloads that were taken, in order. */
  readonly arrived: string[];
  /** Ids that are refused from now on. */
  readonly refusing: Set<string>;
  /** How often each id was tried. */
  readonly tried: string[];
}

/** An outbox with a running relay whose destination refuses what is in `refusing`. */
async function place(
  t: Scope,
  options: Parameters<typeof testOutbox>[1] = {},
  destination: Partial<Destination> = {},
): Promise<Place> {
  const outbox = await testOutbox(t, options);
  const [arrived, tried, refusing] = [[] as string[], [] as string[], new Set<string>()];
  await startRelay(t, outbox, {
    there: {
      async deliver(given) {
        tried.push(given.id);
        if (refusing.has(given.id)) return refused(new Error(`no account "${given.id}"`));
        arrived.push(`${given.id} ${given.text()}`);
        return sent({ taken: given.id });
      },
      ...destination,
    },
  });
  return { ...outbox, desk: createOutboxConsole({ store: outbox.store }), arrived, tried, refusing };
}

const ask = (where: Place, ...ids: readonly (readonly [id: string, key?: string])[]): Promise<unknown> =>
  where.commit((client) =>
    where.outbox.sendAll(
      client,
      ids.map(([id, key]) => effect(id, { key, payload: `p-${id}` })),
    ),
  );

const openEntries = (where: Place, count: number) =>
  until(
    () => where.desk.list({ limit: 1_000 }),
    (rows) => rows.length === count,
  );

const codeOf = async (call: Promise<unknown>): Promise<string> => {
  try {
    await call;
    return "none";
  } catch (error) {
    return error instanceof InboxError ? error.code : String(error);
  }
};

test("a refused effect that is retried is sent, before those of its key that waited for the decision", async (t) => {
  const where = await place(t);
  where.refusing.add("a1");
  await ask(where, ["a1", "a"], ["a2", "a"], ["b1", "b"], ["a3", "a"]);
  const [entry] = await openEntries(where, 1);
  assert.deepEqual(
    [entry!.effectId, entry!.key, entry!.code, entry!.holdsKey, entry!.status, entry!.payloadBytes],
    ["a1", "a", "destination-refused", true, "open", 4],
  );
  await until(() => where.arrived.length === 1);
  assert.deepEqual(where.arrived, ["b1 p-b1"]);
  where.refusing.clear();
  const decision = await where.desk.retry(entry!.id, ann);
  await until(() => where.arrived.length === 4);
  assert.deepEqual(where.arrived.slice(1), ["a1 p-a1", "a2 p-a2", "a3 p-a3"]);
  const shown = await where.desk.show(entry!.id);
  assert.deepEqual(
    [shown!.status, shown!.decision!.id, shown!.decision!.kind, shown!.decision!.by, shown!.decision!.why],
    ["retried", decision, "retry", ann.by, ann.why],
  );
  const history = await until(
    () => where.desk.effect({ destination: "there", producer: "orders", id: "a1" }),
    (found) => found?.outcome === "sent",
  );
  assert.deepEqual(
    history!.attempts.map(({ attempt, outcome, result }) => [attempt, outcome, result]),
    [
      [1, "rejected", undefined],
      [2, "sent", '{"taken":"a1"}'],
    ],
  );
  assert.equal(history!.waiting, undefined);
  assert.equal(await where.desk.effect({ destination: "there", producer: "orders", id: "never" }), undefined);
});

test("a refused effect that is discarded is not sent, and what waited behind it goes on", async (t) => {
  const where = await place(t);
  where.refusing.add("a1");
  await ask(where, ["a1", "a"], ["a2", "a"], ["a3", "a"]);
  const [entry] = await openEntries(where, 1);
  await where.desk.discard(entry!.id, ann);
  await until(() => where.arrived.length === 2);
  assert.deepEqual(where.arrived, ["a2 p-a2", "a3 p-a3"]);
  await until(where.waiting, (waiting) => waiting.length === 0);
  assert.equal((await where.attempts()).includes("a1: discarded"), true);
  // The body is kept with the decision.
  assert.deepEqual((await where.desk.show(entry!.id))!.body!.payload, {
    kind: "text",
    text: "p-a1",
    bytes: 4,
  });
  const history = await where.desk.effect({ destination: "there", producer: "orders", id: "a1" });
  assert.equal(history!.outcome, "discarded");
  // It stays known: asked for again, it is not sent.
  await ask(where, ["a1", "a"]);
  assert.deepEqual(await where.waiting(), []);
});

test("an effect that is refused again is a second entry, and is not tried without a second decision", async (t) => {
  const where = await place(t);
  where.refusing.add("a1");
  await ask(where, ["a1", "a"], ["a2", "a"]);
  const [first] = await openEntries(where, 1);
  await where.desk.retry(first!.id, ann);
  const [second] = await until(
    () => where.desk.list(),
    (rows) => rows.length === 1 && rows[0]!.id !== first!.id,
  );
  assert.equal(second!.againOf, first!.id);
  assert.equal(await codeOf(where.desk.retry(first!.id, ann)), "already-decided");
  assert.deepEqual(where.tried, ["a1", "a1"]);
  await where.desk.discard(second!.id, ann);
  await until(() => where.arrived.length === 1);
  const all = await where.desk.list({ status: "all" });
  assert.deepEqual(
    all.map(({ status, attempts }) => [status, attempts]),
    [
      ["discarded", 2],
      ["retried", 1],
    ],
  );
});

test("with afterRefusal go-on the key goes on; retried, it goes before what has not been sent", async (t) => {
  const where = await place(t, {}, { afterRefusal: "go-on" });
  where.refusing.add("a1");
  await ask(where, ["a1", "a"], ["a2", "a"]);
  const [entry] = await openEntries(where, 1);
  assert.equal(entry!.holdsKey, false);
  await until(() => where.arrived.length === 1);
  where.refusing.clear();
  await where.desk.retry(entry!.id, ann);
  await until(() => where.arrived.length === 2);
  await ask(where, ["a3", "a"]);
  await until(() => where.arrived.length === 3);
  assert.deepEqual(where.arrived, ["a2 p-a2", "a1 p-a1", "a3 p-a3"]);
});

test("a repair sends another body under the same id; the entry keeps both, and the first body stays the effect's own", async (t) => {
  const where = await place(t);
  where.refusing.add("a1");
  await ask(where, ["a1", "a"], ["a2", "a"]);
  const [entry] = await openEntries(where, 1);
  for (const changes of [{}, { payload: "p-a1" }, { payload: "\ud800" }, { headers: { a: 1 as never } }]) {
    assert.equal(await codeOf(where.desk.repair(entry!.id, changes, ann)), "decision-needs");
  }
  const preview = await where.desk.previewRepair(entry!.id, { payload: "fixed" });
  assert.match(preview.diff, /-p-a1\n\+fixed/);
  assert.equal((await openEntries(where, 1))[0]!.status, "open");
  where.refusing.clear();
  await where.desk.repair(entry!.id, { payload: "fixed" }, ann);
  await until(() => where.arrived.length === 2);
  assert.deepEqual(where.arrived, ["a1 fixed", "a2 p-a2"]);
  const shown = await where.desk.show(entry!.id);
  assert.equal(shown!.status, "repaired");
  assert.equal(await codeOf(where.desk.repair(entry!.id, { payload: "again" }, ann)), "already-decided");
  assert.equal(await codeOf(where.desk.previewRepair(entry!.id, { payload: "again" })), "already-decided");
  assert.deepEqual(shown!.body!.payload, { kind: "text", text: "p-a1", bytes: 4 });
  assert.deepEqual(shown!.repair!.payload, { kind: "text", text: "fixed", bytes: 5 });
  // Whoever asks again asks as at first, and that is no conflict.
  await where.commit(async (client) => {
    const again = await where.outbox.send(client, effect("a1", { key: "a", payload: "p-a1" }));
    assert.equal(again.fresh, false);
  });
});

test("many operators at once: one decision on each entry", async (t) => {
  const where = await place(t);
  const ids = Array.from({ length: 5 }, (_, i) => `m${i}`);
  for (const id of ids) where.refusing.add(id);
  await ask(where, ...ids.map((id) => [id, "k"] as const));
  for (let left = ids.length; left > 0; left--) {
    // One key: the next one is refused when the one before has its decision.
    const [entry] = await openEntries(where, 1);
    const { id } = entry!;
    const codes = await Promise.all([1, 2, 3].map(() => codeOf(where.desk.discard(id, ann))));
    assert.deepEqual(codes.sort(), ["already-decided", "already-decided", "none"]);
  }
  await until(where.waiting, (waiting) => waiting.length === 0);
  const { rows } = await where.pool.query<{ n: number }>("select count(*)::int as n from outbox_decision");
  assert.equal(rows[0]!.n, ids.length);
});

test("retry, repair and discard of one entry at once: one of them is it, and it is sent at most once", async (t) => {
  const where = await place(t);
  where.refusing.add("a1");
  await ask(where, ["a1"]);
  const [entry] = await openEntries(where, 1);
  where.refusing.clear();
  const codes = await Promise.all([
    codeOf(where.desk.retry(entry!.id, ann)),
    codeOf(where.desk.discard(entry!.id, ann)),
    codeOf(where.desk.repair(entry!.id, { payload: "fixed" }, ann)),
  ]);
  assert.deepEqual(codes.sort(), ["already-decided", "already-decided", "none"]);
  await until(where.waiting, (waiting) => waiting.length === 0);
  assert.ok(where.arrived.length <= 1);
});

test("a decision on many reaches exactly those that were counted, in order of each key, carried on by any process", async (t) => {
  const where = await place(t);
  const count = 1_150;
  const ids = Array.from({ length: count }, (_, i) => `m${i}`);
  for (const id of ids) where.refusing.add(id);
  await ask(where, ...ids.map((id) => [id] as const));
  await until(
    () => where.desk.count(),
    (open) => open === count,
  );
  const [group, ...others] = await where.desk.groups();
  assert.equal(others.length, 0);
  assert.deepEqual(
    [group!.destination, group!.code, group!.error, group!.count],
    ["there", "destination-refused", 'no account "…"', count],
  );
  assert.ok(group!.oldestMs >= 0 && group!.oldestMs < 60_000);
  const filter = { group: group!.group };
  assert.equal(await codeOf(where.desk.retryMany(filter, { ...ann, expected: count - 1 })), "count-changed");
  assert.equal((await where.desk.decisions()).length, 0);

  const recorded = await where.desk.retryMany(filter, { ...ann, expected: count });
  // Another operator is faster with one of them, and a new refusal comes in meanwhile.
  await where.desk.discard(group!.sample, { by: "bob", why: "a test" });
  where.refusing.clear();
  where.refusing.add("late");
  await ask(where, ["late"]);
  assert.deepEqual(
    (await where.desk.unfinished()).map(({ id }) => id),
    [recorded.id],
  );
  const other = createOutboxConsole({ store: where.store });
  const [done] = await Promise.all([where.desk.carryOn(recorded.id), other.carryOn(recorded.id)]);
  assert.deepEqual([done.matched, done.decided, done.skipped], [count, count - 1, 1]);
  assert.notEqual(done.finishedAt, undefined);
  await until(where.waiting, (waiting) => waiting.length === 1);
  assert.equal(where.arrived.length, count - 1);
  assert.equal(new Set(where.arrived).size, count - 1);
  assert.deepEqual((await openEntries(where, 1))[0]!.effectId, "late");
  assert.equal(await codeOf(where.desk.carryOn("999")), "entry-missing");
});

test("sealed bodies are shown to whoever has the keys, repaired sealed, and never lie open in the tables", async (t) => {
  const key = { id: "k1", key: randomBytes(32) };
  const where = await place(t, { payloadKeys: { current: () => key, byId: () => key } });
  where.refusing.add("secret");
  await where.commit((client) =>
    where.outbox.send(
      client,
      effect("secret", { payload: '{"card":"4111"}', headers: { authorization: "Bearer x", trace: "t" } }),
    ),
  );
  const [entry] = await openEntries(where, 1);
  assert.equal(entry!.payloadBytes, 15);
  const desk = createOutboxConsole({ store: where.store, redact: ["/card"] });
  const shown = await desk.show(entry!.id);
  assert.deepEqual(shown!.body!.payload, { kind: "text", text: '{"card":"***"}', bytes: 15 });
  assert.deepEqual(shown!.body!.headers, { authorization: "***", trace: "t" });
  assert.equal(shown!.keyId, "k1");
  assert.equal(Buffer.from((await desk.body(entry!.id))!.payload!).toString(), '{"card":"4111"}');
  where.refusing.clear();
  await desk.repair(entry!.id, { payload: '{"card":"4222"}' }, ann);
  await until(() => where.arrived.length === 1);
  assert.equal(where.arrived[0], 'secret {"card":"4222"}');
  const { rows } = await where.pool.query<{ text: string }>("select r::text as text from outbox_refusal r");
  for (const { text } of rows) {
    for (const hidden of ["4111", "4222", "Bearer"]) {
      assert.equal(text.includes(hidden), false);
      assert.equal(text.includes(Buffer.from(hidden).toString("hex")), false);
    }
  }
});

test("what waits is listed in order, and each destination tells how it does", async (t) => {
  const where = await place(t);
  where.refusing.add("a1");
  await ask(where, ["a1", "a"], ["a2", "a"]);
  await where.commit((client) =>
    where.outbox.sendAll(client, [
      effect("later", { delayMs: 3_600_000 }),
      effect("lost", { destination: "nobody" }),
    ]),
  );
  await openEntries(where, 1);
  const waiting = await until(
    () => where.desk.waiting(),
    (rows) => rows.some(({ state }) => state === "behind"),
  );
  assert.deepEqual(
    waiting.map(({ effectId, state }) => `${effectId} ${state}`),
    ["a1 quarantined", "a2 behind", "later scheduled", "lost ready"],
  );
  assert.deepEqual(
    (await where.desk.waiting({ destination: "there", after: waiting[0]!.position, limit: 1 })).map(
      ({ effectId }) => effectId,
    ),
    ["a2"],
  );
  const [nobody, there] = await where.desk.status();
  assert.deepEqual(
    [nobody!.destination, nobody!.waiting, nobody!.due, nobody!.relays, nobody!.refused],
    ["nobody", 1, 1, 0, 0],
  );
  assert.ok(nobody!.oldestMs! >= 0);
  assert.deepEqual(
    [there!.waiting, there!.due, there!.scheduled, there!.behind, there!.refused],
    [2, 0, 1, 1, 1],
  );
  assert.ok(there!.oldestRefusedMs! >= 0);
});

test("ids that are none, and texts that no database takes, are answered and not thrown out", async (t) => {
  const where = await place(t);
  const { desk } = where;
  for (const id of ["", "x", "-1", "1e3", "99999999999999999999", "\0", "1; drop table outbox"]) {
    assert.equal(await desk.show(id), undefined);
    assert.equal(await codeOf(desk.retry(id, ann)), "entry-missing");
    assert.equal(await codeOf(desk.repair(id, { payload: "x" }, ann)), "entry-missing");
    assert.deepEqual(await desk.list({ after: id === "" ? "x" : id, text: "\0\ud800" }), []);
  }
  assert.equal(await codeOf(desk.retry("1", { by: " ", why: "x" })), "decision-needs");
  assert.equal(await codeOf(desk.discardMany({}, { ...ann, why: "", expected: 0 })), "decision-needs");
  const none = await desk.discardMany({ destination: "\0" }, { ...ann, expected: 0 });
  assert.notEqual(none.finishedAt, undefined);
});
