import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { ImportedEntry } from "../../src/store/quarantine-store.ts";
import { entryOf, keyed, leasesOf, name, stored, testStore } from "./support.ts";

const decider = { by: "ann", why: "fixed" };

test("a purge takes what was decided on long ago with its repairs, leaves the decisions, and what is still under way", async (t) => {
  const { store, rows, pool, take, handle } = await testStore(t);
  const [open, discarded, retried, repaired] = keyed("a1", "b1", "c1", "d1");
  for (const message of [open!, discarded!, retried!, repaired!])
    await store.quarantine(name, entryOf(message));
  const idOf = async (key: string): Promise<string> =>
    (await store.quarantined.list({ key, status: "all" }))[0]!.id;
  await store.quarantined.decide("discard", await idOf("b"), decider);
  await store.quarantined.decide("retry", await idOf("c"), decider);
  const { tenant, producer, id } = repaired!;
  await store.quarantined.repair(
    await idOf("d"),
    { ...repaired!, identity: { tenant, producer, id }, fingerprint: { mode: "b", digest: "09".repeat(32) } },
    decider,
  );
  await pool.query(
    "update quarantine set decided_at = decided_at - interval '10 days' where status <> 'open'",
  );
  const left = async (): Promise<readonly string[]> =>
    (await rows<{ message_id: string }>("select message_id from quarantine order by 1")).map(
      (row) => row.message_id,
    );
  assert.equal(await store.quarantined.purge(11 * 86_400_000, undefined), 0);
  assert.equal(await store.quarantined.purge(86_400_000, "other"), 0);
  assert.equal(await store.quarantined.countPurgeable(86_400_000, name.consumer), 1);
  assert.equal(await store.quarantined.purge(86_400_000, name.consumer), 1);
  assert.deepEqual(await left(), ["a1", "c1", "d1"], "c1 and d1 are in pending");
  await handle((await take()).messages);
  const purge = await store.quarantined.recordPurge(decider, "{}", 2);
  assert.equal(await store.quarantined.purge(86_400_000, undefined, purge), 2);
  assert.deepEqual(await left(), ["a1"]);
  assert.deepEqual(await rows("select from repair"), []);
  assert.equal((await rows("select from decision")).length, 4);
  assert.equal(
    (await rows("select from message where processed_at is not null")).length,
    2,
    "the identities stay",
  );
});

test("a purge removes at most 1,000 at once, and two at once do not wait for each other", async (t) => {
  const { store, pool } = await testStore(t);
  await pool.query(
    `insert into quarantine (status, decided_at, consumer, headers, fingerprint, fingerprint_mode, code, error, attempts,
                             first_failed_at, last_failed_at, handler_version, error_group, error_shape, payload_bytes)
     select 'discarded', now() - interval '1 day', $1, '{}', '', 'b', 'malformed', '', 0, now(), now(), '1', 'g', '', 0
       from generate_series(1, 2500)`,
    [name.consumer],
  );
  const removed = await Promise.all([
    store.quarantined.purge(1_000, undefined),
    store.quarantined.purge(1_000, undefined),
  ]);
  assert.deepEqual(removed, [1_000, 1_000]);
  assert.equal(await store.quarantined.purge(1_000, undefined), 500);
});

const imported = (id: string, more: Partial<ImportedEntry> = {}): ImportedEntry => ({
  ...entryOf(stored(id)),
  ...name,
  ...{ rawIdentityText: undefined, deliveries: 3, sealed: undefined, importKey: `key of ${id}` },
  ...{
    firstFailedAt: new Date("2026-01-02T03:04:05.006Z"),
    lastFailedAt: new Date("2026-02-03T04:05:06.007Z"),
  },
  ...more,
});

test("an import is idempotent, also twice at once, and keeps the entry's times and counts", async (t) => {
  const { store, rows } = await testStore(t);
  const outcomes = await Promise.all(
    Array.from({ length: 4 }, () => store.quarantined.import(imported("m1"))),
  );
  assert.deepEqual(outcomes.sort(), ["imported", "known", "known", "known"]);
  assert.equal(await store.quarantined.import(imported("m1")), "known");
  const [row] = await store.quarantined.list({});
  assert.deepEqual(
    [row?.messageId, row?.deliveries, row?.attempts, row?.firstFailedAt, row?.lastFailedAt],
    ["m1", 3, 1, imported("m1").firstFailedAt, imported("m1").lastFailedAt],
  );
  assert.deepEqual(await rows("select processed_at from message"), [{ processed_at: null }]);
  // Decided on: importing it again brings it not back.
  await store.quarantined.decide("discard", row!.id, decider);
  assert.equal(await store.quarantined.import(imported("m1")), "known");
  assert.equal(await store.quarantined.count({}), 0);
});

test("an import of what is applied here is told so; another body of it is kept as the conflict it is", async (t) => {
  const { store, begin, take, handle } = await testStore(t);
  const tx = await begin();
  await tx.claim([stored("m1")]);
  await tx.commit();
  assert.equal(await store.quarantined.import(imported("m1")), "applied");
  const other = { fingerprint: { mode: "b", digest: "02".repeat(32) }, code: "payload-conflict" } as const;
  assert.equal(await store.quarantined.import(imported("m1", { ...other, importKey: "other" })), "imported");
  // And it can be worked on as any other entry.
  assert.equal(await store.quarantined.import(imported("m2")), "imported");
  await store.quarantined.decide(
    "retry",
    (await store.quarantined.list({ messageId: "m2" }))[0]!.id,
    decider,
  );
  const { messages } = await take();
  assert.deepEqual(await handle(messages), ["m2"]);
  await take({ maxMessages: 0, done: leasesOf(messages) });
});

test("an import seals what comes open, and keeps sealed what comes sealed", async (t) => {
  const { storeWith, rows, store } = await testStore(t);
  const key = createHash("sha256").update("1").digest();
  const sealing = storeWith({ payloadKeys: { current: () => ({ id: "k1", key }), byId: () => key } });
  assert.equal(await sealing.quarantined.import(imported("m1")), "imported");
  const [row] = await rows<{ payload: Buffer; payload_key_id: string; id: string }>(
    "select id, payload, payload_key_id from quarantine",
  );
  assert.equal(row?.payload_key_id, "k1");
  assert.ok(!row.payload.includes("body of"));
  assert.equal(Buffer.from((await sealing.quarantined.show(row.id))!.payload!).toString(), "body of m1");
  await assert.rejects(store.quarantined.show(row.id), { code: "payload-key-missing" });
  const whole = await sealing.quarantined.stored(row.id);
  await rows("delete from quarantine");
  const again = imported("m1", { importKey: "sealed", sealed: whole!.stored, payload: null, headers: {} });
  assert.equal(await store.quarantined.import(again), "imported");
  const [entry] = await sealing.quarantined.list({});
  assert.equal(Buffer.from((await sealing.quarantined.show(entry!.id))!.payload!).toString(), "body of m1");
});
