import assert from "node:assert/strict";
import { test } from "node:test";
import { identityDigest } from "../../src/message/identity.ts";
import type { RepairRequest } from "../../src/store/quarantine-store.ts";
import type { StoredMessage } from "../../src/store/pending.ts";
import {
  entryOf,
  failed,
  idsOf,
  keyed,
  leasesOf,
  name,
  stored,
  testStore,
  type TestStore,
} from "./support.ts";

const lockTimeoutMs = 5_000;
const decider = { by: "ann", why: "fixed" };
const print = (n: number): StoredMessage["fingerprint"] => ({ mode: "b", digest: `0${n}`.repeat(32) });

const repairOf = (message: StoredMessage, n: number, id = message.id): RepairRequest => {
  const identity = { tenant: message.tenant, producer: message.producer, id };
  return {
    ...{ identity, digest: identityDigest(name.consumer, identity), key: message.key, type: message.type },
    ...{ headers: {}, payload: Buffer.from(`repaired ${n}`), fingerprint: print(n) },
  };
};

const codeOf = (answer: unknown): unknown =>
  typeof answer === "string" ? "decided" : (answer as { code: string }).code;

/** What the claim says of a delivery with this fingerprint: the fingerprint it is compared with. */
async function knownAs({ begin }: TestStore, message: StoredMessage): Promise<string | undefined> {
  const tx = await begin();
  const { notNew } = await tx.claim([message]);
  await tx.rollback();
  return notNew[0]?.seen?.fingerprint;
}

async function openEntry({ store }: TestStore, code?: string): Promise<string> {
  const [row] = await store.quarantined.list({ code });
  assert.ok(row);
  return row.id;
}

test("after a repair neither body's redelivery is a conflict, before and after it is applied; a third body's is", async (t) => {
  const at = await testStore(t);
  const { store, take, handle, rows } = at;
  const [a1] = keyed("a1");
  await store.quarantine(name, entryOf(a1!));
  assert.equal(
    codeOf(await store.quarantined.repair(await openEntry(at), repairOf(a1!, 2), decider)),
    "decided",
  );
  const check = async (): Promise<void> => {
    assert.equal(await knownAs(at, a1!), print(1).digest);
    assert.equal(await knownAs(at, { ...a1!, fingerprint: print(2) }), print(2).digest);
    assert.equal(await knownAs(at, { ...a1!, fingerprint: print(3) }), print(1).digest);
    const again = await store.pending.accept(name, lockTimeoutMs, [{ ...a1!, fingerprint: print(2) }]);
    assert.equal(again[0]?.seen?.fingerprint, print(2).digest, "accept says the same");
  };
  await check();
  const { messages } = await take();
  assert.equal(Buffer.from(messages[0]!.payload!).toString(), "repaired 2");
  assert.deepEqual(await handle(messages), ["a1"]);
  await check();
  const [history] = await store.quarantined.history(a1!.digest);
  assert.deepEqual(
    [history?.status, history?.decision?.kind, history?.decision?.by],
    ["repaired", "repair", "ann"],
  );
  const shown = await store.quarantined.show(history!.id);
  assert.deepEqual(
    [shown?.payload, shown?.repair?.payload].map((body) => Buffer.from(body!).toString()),
    ["body of a1", "repaired 2"],
  );
  assert.deepEqual(
    await rows("select from pending union all select from parked_key where due_at = 'infinity'"),
    [],
  );
});

test("an entry without identity is repaired by one, which must not be another message's", async (t) => {
  const at = await testStore(t);
  const { store, take, begin } = at;
  const nameless = entryOf(stored("x"), {
    identity: undefined,
    rawIdentity: { id: 7 },
    code: "malformed",
    blocking: false,
  });
  await store.quarantine(name, nameless);
  const id = await openEntry(at);
  assert.equal(codeOf(await store.quarantined.decide("retry", id, decider)), "decision-needs");
  const tx = await begin();
  await tx.claim([stored("applied")]);
  await tx.commit();
  await store.quarantine(name, entryOf(stored("parked")));
  assert.equal(
    codeOf(await store.quarantined.repair(id, repairOf(stored("applied"), 2), decider)),
    "already-applied",
  );
  assert.equal(
    codeOf(await store.quarantined.repair(id, repairOf(stored("parked"), 2), decider)),
    "already-pending",
  );
  assert.equal(codeOf(await store.quarantined.repair(id, repairOf(stored("own"), 2), decider)), "decided");
  assert.equal(
    codeOf(await store.quarantined.repair(id, repairOf(stored("own"), 2), decider)),
    "already-decided",
  );
  const { messages } = await take();
  assert.deepEqual(idsOf(messages), ["own"]);
  // It fails again: an entry of its own, which knows where it comes from.
  await store.quarantine(name, entryOf(messages[0]!));
  const history = await store.quarantined.history(stored("own").digest);
  assert.deepEqual(
    history.map(({ id: own, status, againOf }) => [own, status, againOf]),
    [
      [id, "repaired", undefined],
      [history[1]?.id, "open", id],
    ],
  );
});

test("a conflict with what is applied cannot be retried; it is repaired under an id of its own, or discarded", async (t) => {
  const at = await testStore(t);
  const { store, begin, take, handle } = at;
  const tx = await begin();
  await tx.claim([stored("m1")]);
  await tx.commit();
  const second = stored("m1", { fingerprint: print(2) });
  const conflict = entryOf(second, { code: "payload-conflict", blocking: false });
  assert.equal(await store.quarantine(name, conflict), "stored");
  assert.equal(await store.quarantine(name, conflict), "stored");
  const id = await openEntry(at);
  assert.equal((await store.quarantined.show(id))?.deliveries, 2);
  assert.equal(codeOf(await store.quarantined.decide("retry", id, decider)), "already-applied");
  assert.equal(codeOf(await store.quarantined.repair(id, repairOf(second, 2, "m1-b"), decider)), "decided");
  assert.deepEqual(await handle((await take()).messages), ["m1-b"]);
});

test("of two bodies of one identity in quarantine, retrying both moves the first; the ledger knows the one that goes", async (t) => {
  const at = await testStore(t);
  const { store, take, handle } = at;
  await store.quarantine(name, entryOf(stored("m1")));
  await store.quarantine(
    name,
    entryOf(stored("m1", { fingerprint: print(2) }), { code: "payload-conflict" }),
  );
  const { decision } = await store.quarantined.decideMany("retry", {}, decider, 2);
  const done = await store.quarantined.carryOn(decision!.id);
  assert.deepEqual([done?.decided, done?.skipped], [1, 1]);
  const { messages } = await take();
  assert.deepEqual(
    messages.map(({ fingerprint }) => fingerprint.digest),
    [print(1).digest],
  );
  // While it waits, its other body cannot go as well.
  assert.equal(
    codeOf(await store.quarantined.decide("retry", await openEntry(at), decider)),
    "already-pending",
  );
  await store.quarantine(name, entryOf(messages[0]!, { blocking: false }));
  assert.equal(
    codeOf(await store.quarantined.decide("retry", await openEntry(at, "payload-conflict"), decider)),
    "decided",
  );
  assert.equal(await knownAs(at, stored("m1", { fingerprint: print(2) })), print(2).digest);
  await take({ maxMessages: 0, done: leasesOf(messages) });
  assert.deepEqual(await handle((await take()).messages), ["m1"]);
});

test("what cannot be given back stays open, and its key stays parked", async (t) => {
  const { store, rows, schema, pool } = await testStore(t);
  const [a1, b1] = keyed("a1", "b1");
  await store.quarantine(name, entryOf(a1!));
  await store.quarantine(name, entryOf(b1!));
  // As an apply by another way would leave it.
  await pool.query("update message set processed_at = now() where message_id = 'a1'");
  const { decision } = await store.quarantined.decideMany("retry", {}, decider, 2);
  const done = await store.quarantined.carryOn(decision!.id);
  assert.deepEqual([done?.decided, done?.skipped], [1, 1]);
  assert.deepEqual(
    await rows("select message_key, due_at = 'infinity' as decision from parked_key order by 1"),
    [
      { message_key: "a", decision: true },
      { message_key: "b", decision: false },
    ],
  );
  assert.deepEqual(await rows(`select * from ${schema}.requeue(null)`), []);
});

test("two operators and a redelivery at once: one effect, and the second operator is told", async (t) => {
  const at = await testStore(t);
  const { store, begin, untilBlocked, take, handle, rows } = at;
  const [a1] = keyed("a1");
  await store.quarantine(name, entryOf(a1!));
  const id = await openEntry(at);
  const redelivery = await begin();
  const { notNew } = await redelivery.claim([a1!]);
  assert.equal(notNew[0]?.seen?.processed, false);
  await redelivery.rollback();
  // Hold the entry so that both decisions meet on it.
  const gate = await at.session();
  await gate.query("select from quarantine for update");
  const decisions = Promise.all([
    store.quarantined.decide("retry", id, { by: "ann", why: "fixed" }),
    store.quarantined.decide("retry", id, { by: "ben", why: "me too" }),
    store.pending.accept(name, lockTimeoutMs, [a1!]),
  ]);
  await untilBlocked(2);
  await gate.query("commit");
  const [ann, ben, again] = await decisions;
  assert.deepEqual([codeOf(ann), codeOf(ben)].sort(), ["already-decided", "decided"]);
  const refused = [ann, ben].find((answer) => typeof answer !== "string");
  assert.match((refused as Error).message, /is retried: decided by "(ann|ben)" at 2/);
  assert.equal(again.length, 1);
  assert.equal((await rows("select from pending")).length, 1);
  assert.deepEqual(await handle((await take()).messages), ["a1"]);
  assert.equal((await rows("select from decision")).length, 1, "the refused one left nothing");
});

test("a decision on many that is killed in the middle is carried on by whoever finds it, and reaches each entry once", async (t) => {
  const at = await testStore(t);
  const { store, storeWith, pool, rows, untilBlocked, session, take, handle } = at;
  // Three batches of 500, three messages of each key.
  await pool.query(
    `with e as (select i, 'm' || i as id, 'k' || i % 450 as key, md5('m' || i)::uuid as digest from generate_series(1, 1350) i),
     m as (insert into message (digest, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
           select digest, $1, '', 'shop', id, '', 'b', '1' from e),
     k as (insert into parked_key (consumer, message_key, lane, due_at, digest)
           select $1, key, lane_of(key, null), 'infinity', digest from e where i <= 450)
     insert into quarantine (consumer, digest, tenant, producer, message_id, message_key, headers, payload, fingerprint,
                             fingerprint_mode, code, error, attempts, first_failed_at, last_failed_at, handler_version, blocking,
                             error_group, error_shape, payload_bytes)
     select $1, digest, '', 'shop', id, key, '{}', 'x', '', 'b', 'attempts-exhausted', 'x', 5, now(), now(), '1', true, 'g', 'x', 1
       from e order by i`,
    [name.consumer],
  );
  const { decision } = await store.quarantined.decideMany(
    "retry",
    { consumer: name.consumer },
    decider,
    1_350,
  );
  assert.ok(decision);
  assert.equal((await store.quarantined.carryOn(decision.id))?.decided, 500);
  // The second batch meets a lock, and its server process dies there.
  const gate = await session();
  await gate.query("select from message where message_id = 'm700' for update");
  const dying = store.quarantined.carryOn(decision.id);
  dying.catch(() => undefined);
  await untilBlocked();
  await pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0 and query like '%' || $1 || '%'",
    [at.schema],
  );
  await assert.rejects(dying);
  await gate.query("commit");
  const other = storeWith({});
  const [left] = await other.quarantined.unfinished();
  assert.deepEqual([left?.id, left?.decided, left?.finishedAt], [decision.id, 500, undefined]);
  // Two processes at once: each batch is one's.
  const finish = async (): Promise<void> => {
    while ((await other.quarantined.carryOn(decision.id))?.finishedAt === undefined);
  };
  await Promise.all([finish(), finish()]);
  const [done] = await other.quarantined.decisions(1);
  assert.deepEqual([done?.decided, done?.skipped, await store.quarantined.count({})], [1_350, 0, 0]);
  assert.deepEqual(await other.quarantined.unfinished(), []);
  assert.deepEqual(await rows("select count(*)::int as n from pending where state = 'ready'"), [
    { n: 1_350 },
  ]);
  assert.deepEqual(await rows("select from parked_key where due_at = 'infinity' limit 1"), []);
  const order = new Map<string, number>();
  for (let leases = leasesOf([]), n = 0; n < 1_350;) {
    const { messages } = await take({ done: leases });
    for (const { key, id } of messages) {
      const at = Number(id.slice(1));
      assert.ok((order.get(key!) ?? 0) < at, "of a key in the order of arrival");
      order.set(key!, at);
    }
    n += (await handle(messages)).length;
    leases = leasesOf(messages);
  }
});

test("what somebody else decides on meanwhile is skipped by a decision on many", async (t) => {
  const at = await testStore(t);
  const { store } = at;
  for (const message of keyed("a1", "b1", "c1")) await store.quarantine(name, entryOf(message));
  const { decision } = await store.quarantined.decideMany("discard", {}, decider, 3);
  const [row] = await store.quarantined.list({ key: "b" });
  await store.quarantined.decide("retry", row!.id, { by: "ben", why: "mine" });
  const done = await store.quarantined.carryOn(decision!.id);
  assert.deepEqual([done?.decided, done?.skipped, done?.finishedAt === undefined], [2, 1, false]);
  assert.equal((await store.quarantined.show(row!.id))?.status, "retried");
});

test("failures of one message are entries in a row, each again of the one before", async (t) => {
  const at = await testStore(t);
  const { store, take } = at;
  const [a1] = keyed("a1");
  await store.quarantine(name, entryOf(a1!));
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    ids.push(await openEntry(at));
    await store.quarantined.decide("retry", ids[i]!, decider);
    const { messages } = await take();
    await store.pending.putOff(name, failed(messages[0]!));
    await store.quarantine(name, entryOf(messages[0]!, { error: `failed again ${i}` }));
    await take({ maxMessages: 0, done: leasesOf(messages) });
  }
  ids.push(await openEntry(at));
  const history = await store.quarantined.history(a1!.digest);
  assert.deepEqual(
    history.map(({ id, againOf, status }) => [id, againOf, status]),
    ids.map((id, i) => [id, ids[i - 1], i === 3 ? "open" : "retried"]),
  );
  assert.equal(await store.quarantined.count({}), 1);
  const [last] = history.slice(-1);
  assert.ok(
    last!.firstFailedAt > history[0]!.lastFailedAt,
    "its first failure is none of the earlier entry's",
  );
});
