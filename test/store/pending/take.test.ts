import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import {
  entryOf,
  idsOf,
  keyed,
  leasesOf,
  name,
  randomWorker,
  stored,
  testStore,
  failed,
} from "../support.ts";

const lockTimeoutMs = 5_000;
const many = (count: number, of: (i: number) => string): readonly string[] =>
  Array.from({ length: count }, (_, i) => of(i));

test("hands each lane to one worker, in order, and the next one gets nothing of it", async (t) => {
  const { store, take } = await testStore(t);
  const ids = many(200, (i) => `${"abcdefgh"[i % 8]}${i}`);
  await store.pending.accept(name, lockTimeoutMs, keyed(...ids));
  const [first, second] = await Promise.all([take({ maxLanes: 3 }), take({ maxLanes: 3 })]);
  const rest = await take();
  assert.deepEqual((await take()).messages, []);
  const all = [first, second, rest].flatMap(({ messages }) => messages);
  assert.deepEqual(new Set(idsOf(all)), new Set(ids));
  assert.equal(all.length, ids.length);
  for (const part of [first, second, rest]) {
    for (const key of "abcdefgh") {
      const own = part.messages.filter((message) => message.key === key);
      assert.deepEqual(idsOf(own), own.length === 0 ? [] : ids.filter((id) => id.startsWith(key)));
    }
  }
  const lanes = [first, second, rest].map(({ messages }) => new Set(messages.map(({ lease }) => lease.lane)));
  assert.equal(
    new Set(lanes.flatMap((set) => [...set])).size,
    lanes.reduce((sum, { size }) => sum + size, 0),
  );
  assert.ok(lanes[0]!.size <= 3 && lanes[1]!.size <= 3);
});

test("a lane given back is free, and its next taking has a higher token", async (t) => {
  const { store, take } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "a2"));
  const first = await take({ maxMessages: 1 });
  assert.deepEqual(idsOf(first.messages), ["a1"]);
  assert.deepEqual((await take()).messages, []);
  const second = await take({ done: leasesOf(first.messages) });
  assert.deepEqual(idsOf(second.messages), ["a1", "a2"]);
  assert.ok(Number(second.messages[0]?.lease.token) > Number(first.messages[0]?.lease.token));
  assert.ok(second.messages.every(({ suspect }) => !suspect));
  // The old token gives back nothing that is another's by now.
  await take({ maxMessages: 0, done: leasesOf(first.messages) });
  assert.deepEqual((await take()).messages, []);
});

test("a lease runs out by the database's clock; what its worker had in hand is suspect, what came later is not", async (t) => {
  const { store, take, handle, expireLeases } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "a2", "a3"));
  const dead = await take({ maxMessages: 2 });
  assert.deepEqual(idsOf(dead.messages), ["a1", "a2"]);
  await expireLeases();
  const heir = await take({ maxMessages: 2 });
  assert.deepEqual(
    heir.messages.map(({ id, suspect }) => [id, suspect]),
    [
      ["a1", true],
      ["a2", true],
    ],
  );
  // Given back properly after one of them: the other one stays suspect, as nobody knows which it was.
  await handle(heir.messages.slice(0, 1));
  const next = await take({ done: leasesOf(heir.messages) });
  assert.deepEqual(
    next.messages.map(({ id, suspect }) => [id, suspect]),
    [
      ["a2", true],
      ["a3", false],
    ],
  );
  await handle(next.messages);
  await store.pending.accept(name, lockTimeoutMs, keyed("a4"));
  const last = await take({ done: leasesOf(next.messages) });
  assert.deepEqual(
    last.messages.map(({ id, suspect }) => [id, suspect]),
    [["a4", false]],
  );
});

test("renewal prolongs what is held, and neither what is given back nor what another worker took", async (t) => {
  const { store, take, expireLeases, rows } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "b1"));
  const own = await take();
  const leases = leasesOf(own.messages);
  assert.equal(leases.length, 2);
  await expireLeases();
  // Late, but nobody has taken it yet.
  const renewed = await store.pending.renew(name.consumer, leases, 60_000);
  assert.deepEqual(new Set(renewed.map(({ lane }) => lane)), new Set(leases.map(({ lane }) => lane)));
  assert.deepEqual((await take()).messages, []);
  const [kept, lost] = leases;
  await expireLeases();
  const other = await take({ maxLanes: 1 });
  const taken = other.messages[0]!.lease.lane;
  const still = await store.pending.renew(name.consumer, leases, 60_000);
  assert.deepEqual(
    still.map(({ lane }) => lane),
    leases.map(({ lane }) => lane).filter((lane) => lane !== taken),
  );
  await take({ maxMessages: 0, done: [kept!, lost!] });
  assert.deepEqual(await store.pending.renew(name.consumer, [kept!, lost!], 60_000), []);
  assert.equal((await rows("select from pending_lane where leased_until is not null")).length, 1);
});

test("hands out as many bytes as are asked for, one message at least, and leases no lane without a message", async (t) => {
  const { store, take, rows } = await testStore(t);
  const big = (id: string) => stored(id, { key: id[0], payload: Buffer.alloc(1_000) });
  await store.pending.accept(name, lockTimeoutMs, ["a1", "a2", "b1", "c1", "c2", "d1"].map(big));
  const first = await take({ maxBytes: 10 });
  assert.equal(first.messages.length, 1);
  const leased = () => rows<{ lane: number }>("select lane from pending_lane where leased_until is not null");
  assert.deepEqual(await leased(), [{ lane: first.messages[0]!.lease.lane }]);
  const second = await take({ maxBytes: 2_500 });
  assert.equal(second.messages.length, 2);
  const held = new Set([...first.messages, ...second.messages].map(({ lease }) => lease.lane));
  assert.equal((await leased()).length, held.size);
  const done = leasesOf([...first.messages, ...second.messages]);
  assert.equal((await take({ done })).messages.length, 6);
});

test("lanes take turns, so that a full one keeps no other waiting", async (t) => {
  const { store, take, handle } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed(...many(50, (i) => `a${i}`), "b1", "c1", "d1"));
  const seen: string[] = [];
  let done = leasesOf([]);
  for (let turn = 0; turn < 4; turn++) {
    const { messages } = await take({ maxLanes: 1, maxMessages: 10, done });
    await handle(messages);
    done = leasesOf(messages);
    for (const { key } of messages) seen.push(key!);
  }
  assert.deepEqual(new Set(seen), new Set(["a", "b", "c", "d"]));
});

test("what is scheduled is handed out when it is due, in the order of arrival", async (t) => {
  const { store, take, makeDue } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, [stored("u1"), stored("u2")]);
  const { messages } = await take();
  for (const message of messages) {
    const answer = await store.pending.putOff(name, failed(message, { delayAfter: () => 3_600_000 }));
    assert.deepEqual(answer, { kind: "stored", attempts: 1, delayMs: 3_600_000 });
  }
  assert.deepEqual((await take({ done: leasesOf(messages) })).messages, []);
  await makeDue();
  const due = await take();
  assert.deepEqual(
    new Set(due.messages.map(({ id, attempts }) => `${id} ${attempts}`)),
    new Set(["u1 1", "u2 1"]),
  );
});

test("a consumer sees nothing of another one", async (t) => {
  const { store, take } = await testStore(t);
  await store.pending.openLanes("other");
  await store.pending.openLanes("other");
  await store.pending.accept({ ...name, consumer: "other" }, lockTimeoutMs, keyed("a1"));
  assert.deepEqual((await take()).messages, []);
  const taken = await store.pending.take("other", {
    ...{ workerId: randomWorker(), leaseMs: 1_000, maxLanes: 1, maxMessages: 1, maxBytes: 1, done: [] },
  });
  assert.deepEqual(idsOf(taken.messages), ["a1"]);
});

test("what commits late at an early place is found though the lane was looked at from later on", async (t) => {
  const { store, take, handle, session, schema, rows, pool } = await testStore(t);
  const from = async (): Promise<number> =>
    Number((await rows<{ from: string }>("select max(ready_from)::text as from from pending_lane"))[0]?.from);
  // Two seconds pass, or do not pass, when the test says so.
  const noted = (ago: string) =>
    pool.query(`update pending_lane set next_at = clock_timestamp() - interval '${ago}'`);
  let done = leasesOf([]);
  const turn = async (id: string, ago: string): Promise<void> => {
    await store.pending.accept(name, lockTimeoutMs, keyed(id));
    await noted(ago);
    const { messages } = await take({ done });
    assert.deepEqual(idsOf(messages), [id]);
    done = leasesOf(messages);
    await handle(messages);
  };
  const accept = async (id: string): Promise<pg.PoolClient> => {
    const client = await session();
    const body = `'{NULL}', '{NULL}', '{"{}"}', array[null::bytea], '{NULL}'`;
    await client.query(
      `select ${schema}.accept($1, '1', 0, array[$2::uuid], '{""}', '{shop}', array[$3], array[''::bytea], '{b}', '{a}', ${body}, '{null}')`,
      [name.consumer, stored(id).digest, id],
    );
    return client;
  };
  const late = await accept("late");
  for (let i = 0; i < 4; i++) await turn(`a${i}`, "0 s");
  assert.equal(await from(), 0, "its transaction is open: the mark stays before it");
  await late.query("commit");
  const { messages } = await take({ done });
  assert.deepEqual(idsOf(messages), ["late"]);
  await handle(messages);
  done = leasesOf(messages);

  const tooLate = await accept("too-late");
  for (let i = 4; i < 8; i++) await turn(`a${i}`, "3 s");
  assert.ok((await from()) > 5, "it has had its time: the mark moves on");
  await tooLate.query("commit");
  await noted("0 s");
  assert.deepEqual((await take({ done })).messages, []);
  await rows("update pending_lane set whole_at = whole_at - interval '1 minute'");
  assert.deepEqual(
    idsOf((await take()).messages),
    ["too-late"],
    "the look of each minute begins at the beginning",
  );
});

test("what a decision puts back at its old place is found at once", async (t) => {
  const { store, take, handle, pool } = await testStore(t);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "a2"));
  const { messages } = await take();
  await store.quarantine(name, entryOf(messages[0]!, { blocking: false }));
  await handle(messages.slice(1));
  let done = leasesOf(messages);
  for (let i = 3; i < 8; i++) {
    await store.pending.accept(name, lockTimeoutMs, keyed(`a${i}`));
    await pool.query("update pending_lane set next_at = next_at - interval '2 s'");
    const taken = (await take({ done })).messages;
    await handle(taken);
    done = leasesOf(taken);
  }
  await take({ maxMessages: 0, done });
  const { rows: marks } = await pool.query<{ from: string }>(
    "select max(ready_from) as from from pending_lane",
  );
  assert.ok(Number(marks[0]?.from) > 2);
  await store.quarantined.decide("retry", (await store.quarantined.list({}))[0]!.id, {
    by: "ann",
    why: "fixed",
  });
  assert.deepEqual(idsOf((await take()).messages), ["a1"]);
});

test("with an old snapshot open a look still begins where the last ones ended, not at what was handled before", async (t) => {
  const { store, take, handle, session, rows, pool } = await testStore(t);
  const old = await session();
  await old.query("set transaction isolation level repeatable read");
  await old.query("select count(*) from pending");
  let done = leasesOf([]);
  for (let i = 0; i < 5; i++) {
    await store.pending.accept(name, lockTimeoutMs, keyed(...many(300, (n) => `a${i * 300 + n}`)));
    await pool.query("update pending_lane set next_at = next_at - interval '2 s'");
    const { messages } = await take({ done });
    assert.equal(messages.length, 300);
    done = leasesOf(messages);
    await handle(messages);
  }
  await take({ maxMessages: 0, done });
  const [lane] = await rows<{ from: string }>(
    "select ready_from::text as from from pending_lane where ready_from > 0",
  );
  assert.equal(lane?.from, "901", "of 1,500 handled messages only the last two hands are looked at again");
  // Empty, the lane is marked twice more, and not again and again.
  for (let i = 0; i < 4; i++) {
    await pool.query("update pending_lane set next_at = next_at - interval '2 s'");
    await take();
  }
  const [empty] = await rows<{ from: string }>(
    "select ready_from::text as from from pending_lane where ready_from > 0",
  );
  assert.equal(empty?.from, "1500");
});
