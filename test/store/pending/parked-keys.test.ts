import assert from "node:assert/strict";
import { test } from "node:test";
import type { StoredMessage } from "../../../src/store/pending.ts";
import { entryOf, failed, idsOf, keyed, leasesOf, name, testStore, type TestStore } from "../support.ts";

const lockTimeoutMs = 5_000;
const decider = { by: "ann", why: "fixed" };

/** What a run does with a message that comes inline while its key is parked. */
async function storeBehind(
  { begin }: TestStore,
  messages: readonly StoredMessage[],
): Promise<readonly string[]> {
  const tx = await begin();
  const { keysParked } = await tx.claim(messages);
  const keys = messages.map(({ key }) => key!);
  const parked = keysParked ? await tx.parkedKeys(keys) : new Set<string>();
  const behind = messages.filter(({ key }) => parked.has(key!));
  if (behind.length > 0) await tx.storeBehind(behind);
  await tx.commit();
  return idsOf(behind);
}

/** Takes, handles and gives back until nothing is left; resolves with the order in which messages were handled. */
async function workAll({ take, handle }: TestStore, most = 1_000): Promise<readonly string[]> {
  const order: string[] = [];
  let done = leasesOf([]);
  for (;;) {
    const { messages, more } = await take({ done, maxMessages: most });
    if (messages.length === 0 && !more) return order;
    order.push(...(await handle(messages)));
    done = leasesOf(messages);
  }
}

test("messages of a key wait in order behind its first one, other keys go on", async (t) => {
  const at = await testStore(t);
  const { store, take, makeDue, rows } = at;
  const [a1, a2, a3, b1] = keyed("a1", "a2", "a3", "b1");
  await store.pending.putOff(name, failed(a1!));
  assert.deepEqual(await storeBehind(at, [a2!, b1!]), ["a2"]);
  assert.deepEqual(await storeBehind(at, [a3!]), ["a3"]);
  assert.deepEqual(
    await rows("select message_id, processed_at is not null as done from message order by 1"),
    [
      { message_id: "a1", done: false },
      { message_id: "a2", done: false },
      { message_id: "a3", done: false },
      { message_id: "b1", done: true },
    ],
  );
  assert.deepEqual((await take()).messages, []);
  await makeDue();
  assert.deepEqual(await workAll(at), ["a1", "a2", "a3"]);
  assert.deepEqual(await rows("select from parked_key"), []);
});

test("the claim tells of parked keys for one message as for many, and only for its own consumer", async (t) => {
  const { store, begin } = await testStore(t);
  const parked = async (ids: readonly string[]): Promise<boolean> => {
    const tx = await begin();
    const { keysParked } = await tx.claim(keyed(...ids));
    await tx.rollback();
    return keysParked;
  };
  assert.deepEqual([await parked(["b1"]), await parked(["b1", "b2"])], [false, false]);
  await store.pending.putOff(
    { ...name, consumer: "other" },
    failed({ ...keyed("a1")[0]!, digest: "0".repeat(32) }),
  );
  assert.deepEqual([await parked(["b1"]), await parked(["b1", "b2"])], [false, false]);
  await store.pending.putOff(name, failed(keyed("a1")[0]!));
  assert.deepEqual([await parked(["b1"]), await parked(["b1", "b2"])], [true, true]);
  // Also where some of them are not new.
  assert.equal(await parked(["a1", "b2"]), true);
});

test("a message stored behind its key while the key is let go is not forgotten", async (t) => {
  const at = await testStore(t);
  const { store, begin, take, handle, makeDue, rows } = at;
  const [a1, a2] = keyed("a1", "a2");
  await store.pending.putOff(name, failed(a1!));
  await makeDue();
  const first = await take();
  // The inserter has seen that the key is parked, and has not committed.
  const tx = await begin();
  await tx.claim([a2!]);
  assert.deepEqual(await tx.parkedKeys(["a"]), new Set(["a"]));
  await handle(first.messages);
  // The key's lane sees nothing of it, and must not let the key go.
  assert.deepEqual((await take({ done: leasesOf(first.messages) })).messages, []);
  assert.equal((await rows("select from parked_key")).length, 1);
  await tx.storeBehind([a2!]);
  await tx.commit();
  assert.deepEqual(await workAll(at), ["a2"]);
  assert.deepEqual(await rows("select from parked_key"), []);
});

test("a message that comes while the key is let go waits for that, and then goes its own way", async (t) => {
  const { store, begin, take, handle, makeDue, session, schema, untilBlocked, rows } = await testStore(t);
  const [a1, a2] = keyed("a1", "a2");
  await store.pending.putOff(name, failed(a1!));
  await makeDue();
  await handle((await take()).messages);
  const lane = await session();
  await lane.query(`select ${schema}.advance_key($1, 'a')`, [name.consumer]);
  const tx = await begin();
  assert.equal((await tx.claim([a2!])).keysParked, true);
  const parked = tx.parkedKeys(["a"]);
  await untilBlocked();
  await lane.query("commit");
  assert.deepEqual(await parked, new Set());
  await tx.commit();
  assert.deepEqual(await rows("select message_id from message where processed_at is not null order by 1"), [
    { message_id: "a1" },
    { message_id: "a2" },
  ]);
});

test("a key that waits for a decision is passed over until it has one, whatever else is decided", async (t) => {
  const at = await testStore(t);
  const { store, rows } = at;
  const [a1, a2, b1, b2] = keyed("a1", "a2", "b1", "b2");
  await store.quarantine(name, entryOf(a1!));
  await store.quarantine(name, entryOf(b1!));
  await storeBehind(at, [a2!, b2!]);
  assert.deepEqual(await workAll(at), []);
  const entries = await store.quarantined.list({});
  await store.quarantined.decide("discard", entries.find(({ key }) => key === "b")!.id, decider);
  assert.deepEqual(await workAll(at), ["b2"]);
  await store.quarantined.decide("retry", entries.find(({ key }) => key === "a")!.id, decider);
  assert.deepEqual(await workAll(at), ["a1", "a2"]);
  assert.deepEqual(await rows("select from parked_key union all select from pending"), []);
});

test("of two entries of a key, the earlier one given back runs, and the rest waits for the later one", async (t) => {
  const at = await testStore(t);
  const { store } = at;
  const [a1, a2, a3] = keyed("a1", "a2", "a3");
  // Two processes had a message of the key in hand when it was parked.
  await store.quarantine(name, entryOf(a1!));
  await store.quarantine(name, entryOf(a2!));
  await storeBehind(at, [a3!]);
  const [second, first] = await store.quarantined.list({});
  await store.quarantined.decide("retry", first!.id, decider);
  assert.deepEqual(await workAll(at), ["a1"]);
  await store.quarantined.decide("retry", second!.id, decider);
  assert.deepEqual(await workAll(at), ["a2", "a3"]);
});

test("the later one first: it waits for the earlier one", async (t) => {
  const at = await testStore(t);
  const { store } = at;
  const [a1, a2, a3] = keyed("a1", "a2", "a3");
  await store.quarantine(name, entryOf(a1!));
  await store.quarantine(name, entryOf(a2!));
  await storeBehind(at, [a3!]);
  const [second, first] = await store.quarantined.list({});
  await store.quarantined.decide("retry", second!.id, decider);
  assert.deepEqual(await workAll(at), []);
  await store.quarantined.decide("retry", first!.id, decider);
  assert.deepEqual(await workAll(at), ["a1", "a2", "a3"]);
});

test("messages that were accepted before their key was parked wait in their places all the same", async (t) => {
  const at = await testStore(t);
  const { store, take, makeDue } = at;
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "a2", "a3"));
  const { messages } = await take({ maxMessages: 1 });
  await store.pending.putOff(name, failed(messages[0]!));
  await store.pending.accept(name, lockTimeoutMs, keyed("a4", "b1"));
  await take({ maxMessages: 0, done: leasesOf(messages) });
  assert.deepEqual(await workAll(at), ["b1"]);
  await makeDue();
  assert.deepEqual(await workAll(at), ["a1", "a2", "a3", "a4"]);
});

test("1,700 messages behind a key come back in order, and keep nobody else waiting meanwhile", async (t) => {
  const at = await testStore(t);
  const { store, take, makeDue, handle } = at;
  const ids = Array.from({ length: 1_700 }, (_, i) => `a${i}`);
  const [head, ...rest] = keyed(...ids);
  await store.pending.putOff(name, failed(head!));
  await storeBehind(at, rest.slice(0, 1_200));
  await store.pending.accept(name, lockTimeoutMs, [...rest.slice(1_200), ...keyed("b1")]);
  const { messages } = await take();
  assert.deepEqual(idsOf(messages), ["b1"]);
  await handle(messages);
  await take({ maxMessages: 0, done: leasesOf(messages) });
  await makeDue();
  assert.deepEqual(await workAll(at, 400), ids);
});

test("a row that a stopped worker still has in its transaction keeps nobody from taking the rest of its lane", async (t) => {
  const { store, take, begin, expireLeases, pool } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "a2"));
  const zombie = (await take()).messages;
  const asleep = await begin();
  await asleep.hold(zombie.slice(1));
  await expireLeases();
  // Meanwhile its key is parked by an earlier message of it.
  await pool.query("update pending set state = 'scheduled', due_at = 'infinity' where message_id = 'a1'");
  await pool.query(
    `insert into parked_key (consumer, message_key, lane, due_at, digest)
     select consumer, message_key, lane, 'infinity', digest from pending where message_id = 'a1'`,
  );
  const lane = zombie[0]!.lease.lane;
  await pool.query("update pending set lane = $1 where false", [lane]);
  await store.pending.accept(name, lockTimeoutMs, keyed("b1"));
  const { messages } = await take();
  assert.deepEqual(idsOf(messages), ["b1"]);
  await asleep.rollback();
});

test("keys whose messages are handled in a lane full of waiting keys all get their turn", async (t) => {
  const at = await testStore(t);
  const { pool, rows } = at;
  // 600 keys of one lane, each due, each with two messages behind.
  await pool.query(
    `with keys as (
       select k.key, row_number() over () as n
         from (select 'k' || i || '-' as key from generate_series(1, 200000) i where lane_of('k' || i || '-', null) = 7 limit 600) k
     ), m as (
       insert into message (digest, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
       select md5(key || s)::uuid, $1, '', 'shop', key || s, '', 'b', '1' from keys, generate_series(1, 2) s returning digest, message_id
     ), p as (
       insert into pending (digest, lane, state, consumer, tenant, producer, message_id, message_key, headers, fingerprint, fingerprint_mode)
       select md5(key || s)::uuid, 7, 'behind', $1, '', 'shop', key || s, key, '{}', '', 'b' from keys, generate_series(1, 2) s
     )
     insert into parked_key (consumer, message_key, lane, due_at, digest)
     select $1, key, 7, clock_timestamp() + n * interval '1 microsecond' - interval '1 second', md5(key || 1)::uuid from keys`,
    [name.consumer],
  );
  const order = await workAll(at, 50);
  assert.equal(new Set(order).size, 1_200);
  assert.equal(order.length, 1_200);
  const last = new Map<string, number>();
  for (const id of order) {
    const [key, n] = [id.slice(0, -1), Number(id.slice(-1))];
    assert.ok((last.get(key) ?? 0) < n, `${id} in order`);
    last.set(key, n);
  }
  assert.deepEqual(await rows("select from parked_key"), []);
});
