import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { createQuarantine } from "../../src/quarantine/quarantine.ts";
import { ann, consumer, entryId, put, testStore } from "./support.ts";

test("a decision needs who and why, in words", async (t) => {
  const { store } = await testStore(t);
  const quarantine = createQuarantine({ store });
  await put(store, "m1");
  const id = await entryId(store, "m1");
  for (const decider of [
    { by: "", why: "because" },
    { by: "ann", why: "  \n" },
    { by: "ann", why: undefined as unknown as string },
  ]) {
    await assert.rejects(quarantine.retry(id, decider), { code: "decision-needs" });
    await assert.rejects(quarantine.repair(id, { payload: "[]" }, decider), { code: "decision-needs" });
    await assert.rejects(quarantine.discardMany({}, { ...decider, expected: 1 }), { code: "decision-needs" });
    await assert.rejects(quarantine.purge({ decidedBeforeMs: 0 }, decider), { code: "decision-needs" });
  }
  assert.equal(await quarantine.count(), 1);
  assert.deepEqual(await quarantine.decisions(), []);
});

test("retry gives a message back to pending, and the entry keeps who, when and why", async (t) => {
  const { store } = await testStore(t);
  const quarantine = createQuarantine({ store });
  await put(store, "m1", { key: "k" });
  const id = await entryId(store, "m1");
  const decision = await quarantine.retry(id, { by: " ann ", why: "fixed" });
  assert.equal(await quarantine.count(), 0);
  const [row] = await quarantine.history({ consumer, tenant: "", producer: "shop", id: "m1" });
  assert.equal(row?.status, "retried");
  assert.deepEqual(
    [row.decision?.id, row.decision?.kind, row.decision?.by, row.decision?.why],
    [decision, "retry", "ann", "fixed"],
  );
  assert.deepEqual(
    (await store.operator.listPending({})).map(({ messageId, state }) => [messageId, state]),
    [["m1", "ready"]],
  );
  await assert.rejects(quarantine.discard(id, ann), { code: "already-decided", message: /retried.*"ann"/ });
  await assert.rejects(quarantine.retry("999", ann), { code: "entry-missing" });
  await assert.rejects(quarantine.retry("x'; drop", ann), { code: "entry-missing" });
});

test("repair keeps both bodies and shows what was changed", async (t) => {
  const { store } = await testStore(t);
  const quarantine = createQuarantine({ store, redact: ["/card"] });
  await put(store, "m1", { payload: '{"amount":"12","card":"4111"}' });
  const id = await entryId(store, "m1");
  await quarantine.repair(id, { payload: '{"amount":12,"card":"4222"}' }, ann);
  const shown = await quarantine.show(id);
  assert.equal(shown?.status, "repaired");
  assert.deepEqual(shown.payload, { kind: "text", text: '{"amount":"12","card":"***"}', bytes: 29 });
  assert.match(shown.repair?.diff ?? "", /^-  "amount": "12",$/m);
  assert.match(shown.repair?.diff ?? "", /^\+  "amount": 12,$/m);
  assert.match(shown.repair?.diff ?? "", /Hidden parts are not compared/);
  assert.doesNotMatch(JSON.stringify(shown), /4111|4222/);
  const [row] = await store.operator.listPending({});
  const pending = await store.operator.showPending((await store.quarantined.stored(id))!.digest!);
  assert.equal(row?.messageId, "m1");
  assert.equal(Buffer.from(pending!.payload!).toString(), '{"amount":12,"card":"4222"}');
});

test("a repair that changes nothing, or does not fit the schema, is refused and leaves the entry open", async (t) => {
  const { store } = await testStore(t);
  const payloadSchema = z.object({ amount: z.number() });
  const quarantine = createQuarantine({ store, payloadSchema });
  await put(store, "m1", { payload: '{"amount":"12"}' });
  const id = await entryId(store, "m1");
  await assert.rejects(quarantine.repair(id, { payload: '{"amount":"12"}' }, ann), {
    code: "decision-needs",
    message: /changes nothing/,
  });
  await assert.rejects(quarantine.repair(id, { payload: '{"amount":"13"}' }, ann), {
    code: "invalid-payload",
    message: /amount/,
  });
  await assert.rejects(quarantine.repair(id, { payload: "no json" }, ann), { code: "malformed" });
  await assert.rejects(quarantine.repair(id, { id: "\ud800" }, ann), { code: "decision-needs" });
  await assert.rejects(quarantine.repair("999", { payload: "1" }, ann), { code: "entry-missing" });
  assert.equal(await quarantine.count(), 1);
  await quarantine.repair(id, { payload: '{"amount":13}' }, ann);
  assert.equal(await quarantine.count(), 0);
});

test("an entry without identity is repaired by giving what it lacks; what could be read of it is taken", async (t) => {
  const { store } = await testStore(t);
  const quarantine = createQuarantine({ store });
  const lost = { named: false, code: "no-identity", payload: '{"total":1}' } as const;
  await put(store, "", { ...lost, rawIdentity: { producer: "shop", tenant: "t", id: 7 } });
  const [row] = await quarantine.list();
  const id = row!.id;
  await assert.rejects(quarantine.retry(id, ann), { code: "decision-needs", message: /no identity/ });
  await assert.rejects(quarantine.repair(id, {}, ann), { code: "decision-needs" });
  await quarantine.repair(id, { id: "7" }, ann);
  assert.deepEqual(
    (await store.operator.listPending({})).map(({ tenant, producer, messageId }) => [
      tenant,
      producer,
      messageId,
    ]),
    [["t", "shop", "7"]],
  );
  const history = await quarantine.history({ consumer, tenant: "t", producer: "shop", id: "7" });
  assert.deepEqual(
    history.map((entry) => [entry.id, entry.status]),
    [[id, "repaired"]],
  );
});

test("a decision on many decides on what was previewed, or on nothing", async (t) => {
  const { store } = await testStore(t);
  const quarantine = createQuarantine({ store });
  for (const id of ["1", "2", "3"]) await put(store, id);
  await put(store, "other", { code: "attempts-exhausted" });
  const filter = { code: "handler-rejected" };
  const expected = await quarantine.count(filter);
  assert.equal(expected, 3);
  await put(store, "4");
  await assert.rejects(quarantine.retryMany(filter, { ...ann, expected }), {
    code: "count-changed",
    message: /^4 open entries fit, not 3/,
  });
  assert.deepEqual(await quarantine.decisions(), []);

  const recorded = await quarantine.retryMany(filter, { ...ann, expected: 4 });
  assert.deepEqual([recorded.matched, recorded.decided, recorded.finishedAt], [4, 0, undefined]);
  assert.deepEqual(
    (await quarantine.unfinished()).map(({ id }) => id),
    [recorded.id],
  );
  const seen: number[] = [];
  const done = await quarantine.carryOn(recorded.id, { onBatch: ({ decided }) => seen.push(decided) });
  assert.deepEqual([done.decided, done.skipped, seen.at(-1)], [4, 0, 4]);
  assert.ok(done.finishedAt);
  assert.deepEqual(await quarantine.unfinished(), []);
  assert.equal(await quarantine.count(), 1);
  await assert.rejects(quarantine.carryOn("12345"), { code: "entry-missing" });
});

test("a purge takes only what was decided on long enough ago, and leaves the decision and the identity", async (t) => {
  const { store, pool } = await testStore(t);
  const quarantine = createQuarantine({ store });
  for (const id of ["old", "fresh", "open"]) await put(store, id);
  await quarantine.discard(await entryId(store, "old"), ann);
  await quarantine.discard(await entryId(store, "fresh"), ann);
  await pool.query(
    "update quarantine set decided_at = decided_at - interval '91 days' where message_id = 'old'",
  );
  const ninetyDays = { decidedBeforeMs: 90 * 86_400_000 };
  assert.equal(await quarantine.countPurgeable(ninetyDays), 1);
  assert.equal(await quarantine.countPurgeable({ ...ninetyDays, consumer: "another" }), 0);
  assert.equal(await quarantine.purge(ninetyDays, { by: "ann", why: "retention" }), 1);
  assert.deepEqual(
    (await quarantine.list({ status: "all" })).map(({ messageId }) => messageId),
    ["open", "fresh"],
  );
  const [last, ...others] = await quarantine.decisions();
  assert.deepEqual(
    [last?.kind, last?.by, last?.why, last?.matched, last?.decided],
    ["purge", "ann", "retention", 1, 1],
  );
  assert.ok(last?.finishedAt);
  assert.equal(others.length, 2);
  const { rows } = await pool.query("select message_id from message where message_id = 'old'");
  assert.equal(rows.length, 1);
  await assert.rejects(quarantine.purge({ decidedBeforeMs: -1 }, ann), { code: "invalid-option" });
  assert.equal(await quarantine.purge(ninetyDays, ann), 0);
});
