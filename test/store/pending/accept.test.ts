import assert from "node:assert/strict";
import { test } from "node:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { idsOf, keyed, name, stored, testStore } from "../support.ts";

const accept = 5_000;

test("stores identity and body in the order given, and hands them out as they came", async (t) => {
  const { store, take, rows } = await testStore(t);
  const time = new Date("2026-05-04T03:02:01.007Z");
  const messages = [
    stored("m2", { type: "paid", time, headers: { a: "1" }, payload: Buffer.from([0, 255, 92]) }),
    stored("m1", { payload: null }),
    ...keyed("k1", "k2", "k3"),
  ];
  assert.deepEqual(await store.pending.accept(name, accept, messages), []);
  const order = await rows<{ message_id: string }>("select message_id from pending order by position");
  assert.deepEqual(
    order.map((row) => row.message_id),
    ["m2", "m1", "k1", "k2", "k3"],
  );
  const { messages: taken, more } = await take();
  assert.equal(more, false);
  assert.deepEqual(new Set(idsOf(taken)), new Set(idsOf(messages)));
  const [first] = taken.filter(({ id }) => id === "m2");
  assert.deepEqual(
    { ...first!, lease: undefined, position: undefined },
    {
      ...messages[0]!,
      lease: undefined,
      position: undefined,
      attempts: 0,
      deferrals: 0,
      suspect: false,
      sealed: undefined,
    },
  );
  assert.deepEqual(idsOf(taken.filter(({ key }) => key === "k")), ["k1", "k2", "k3"]);
});

test("tells what was not new, and stores the rest", async (t) => {
  const { store, begin, rows } = await testStore(t);
  await store.pending.accept(name, accept, [stored("waits")]);
  const tx = await begin();
  await tx.claim([stored("applied")]);
  await tx.commit();
  const other = stored("waits", { fingerprint: { mode: "b", digest: "02".repeat(32) } });
  const notNew = await store.pending.accept(name, accept, [stored("new"), other, stored("applied")]);
  assert.deepEqual(
    new Map(notNew.map(({ digest, seen }) => [digest, [seen?.processed, seen?.fingerprint]])),
    new Map([
      [other.digest, [false, "01".repeat(32)]],
      [stored("applied").digest, [true, "01".repeat(32)]],
    ]),
  );
  assert.deepEqual(await rows("select message_id from pending order by position"), [
    { message_id: "waits" },
    { message_id: "new" },
  ]);
  assert.deepEqual(await rows("select payload from pending where message_id = 'waits'"), [
    { payload: stored("waits").payload },
  ]);
});

test("of two accepts at once one stores, and the other waits and is told", async (t) => {
  const { store, begin, rows, untilBlocked } = await testStore(t);
  const tx = await begin();
  await tx.claim([stored("m1")]);
  const accepting = store.pending.accept(name, accept, [stored("m1"), stored("m2")]);
  await untilBlocked();
  await tx.commit();
  assert.deepEqual(
    (await accepting).map(({ digest, seen }) => [digest, seen?.processed]),
    [[stored("m1").digest, true]],
  );
  assert.deepEqual(await rows("select message_id from pending"), [{ message_id: "m2" }]);
});

test("an accept that waited for a claim that was rolled back stores the message", async (t) => {
  const { store, begin, rows, untilBlocked } = await testStore(t);
  const tx = await begin();
  await tx.claim([stored("m1")]);
  const accepting = store.pending.accept(name, accept, [stored("m1")]);
  await untilBlocked();
  await tx.rollback();
  assert.deepEqual(await accepting, []);
  assert.deepEqual(await rows("select message_id, state from pending"), [
    { message_id: "m1", state: "ready" },
  ]);
});

test("an accept waits no longer than it may, and stores nothing then", async (t) => {
  const { store, begin, rows } = await testStore(t);
  const tx = await begin();
  await tx.claim([stored("m1")]);
  await assert.rejects(store.pending.accept(name, 20, [stored("m0"), stored("m1")]), { code: "55P03" });
  await tx.rollback();
  assert.deepEqual(await rows("select from pending union all select from message"), []);
});

test("a message claimed in a transaction of its own is not stored by an accept behind it", async (t) => {
  const { store, begin, rows } = await testStore(t);
  const tx = await begin();
  assert.deepEqual(await tx.claim([stored("m1")]), { notNew: [], keysParked: false });
  await tx.commit();
  const [notNew] = await store.pending.accept(name, accept, [stored("m1")]);
  assert.equal(notNew?.seen?.processed, true);
  assert.deepEqual(await rows("select from pending"), []);
});

test("keeps any key, type and header and any bytes", { timeout: 60_000 }, async (t) => {
  const { store, take, handle } = await testStore(t);
  const text = fc.oneof(
    fc.string({ unit: "binary" }).map((value) => value.replaceAll("\0", "")),
    fc.constantFrom("NULL", "{}", '"\\', "\\\\x00", '{NULL,"a"}', "'; drop table pending; --"),
  );
  let n = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          key: fc.option(text, { nil: undefined }),
          type: fc.option(text, { nil: undefined }),
          headers: fc.dictionary(fc.string({ unit: "binary" }), fc.string({ unit: "binary" })),
          payload: fc.option(fc.uint8Array({ maxLength: 300 }), { nil: null }),
        }),
        { minLength: 1, maxLength: 20 },
      ),
      async (shapes) => {
        const messages = shapes.map(({ headers, ...shape }) =>
          stored(`any-${n++}`, { ...shape, headers: { ...headers } }),
        );
        await store.pending.accept(name, accept, messages);
        const { messages: taken } = await take();
        const byId = new Map(taken.map((message) => [message.id, message]));
        for (const message of messages) {
          const own = byId.get(message.id);
          assert.ok(own);
          assert.deepEqual(
            [own.key, own.type, own.headers, own.payload && [...own.payload]],
            [message.key, message.type, message.headers, message.payload && [...message.payload]],
          );
        }
        await handle(taken);
        await take({ maxMessages: 0, done: taken.map(({ lease }) => lease) });
      },
    ),
    { numRuns: 30 },
  );
});

test("all messages of a key are in one lane, and keys and identities spread over all 64", async (t) => {
  const { rows } = await testStore(t);
  const [spread] = await rows<{ keys: number; digests: number; same: boolean; low: number; high: number }>(
    `select count(distinct lane_of(i::text, null))::int as keys,
            count(distinct lane_of(null, encode(sha256(i::text::bytea), 'hex')::char(32)::uuid))::int as digests,
            bool_and(lane_of(i::text, null) = lane_of(i::text, gen_random_uuid())) as same,
            min(lane_of(i::text, null)) as low, max(lane_of(i::text, null)) as high
       from generate_series(1, 2000) i`,
  );
  assert.deepEqual(spread, { keys: 64, digests: 64, same: true, low: 0, high: 63 });
  // What is stored by one version of the server must be found by the next: the hash may never change.
  const fixed = await rows<{ lanes: number[] }>(
    `select array(select lane_of(k, null)::int from unnest(array['', 'a', 'account-1', 'é漢字', repeat('x', 5000)])
       with ordinality as u (k, n) order by n) as lanes`,
  );
  assert.deepEqual(fixed[0]?.lanes, [45, 49, 20, 35, 36]);
});

test("a body is sealed before it is stored, and without a key nothing is stored", async (t) => {
  const { storeWith, rows, take } = await testStore(t);
  let key: Buffer | undefined = createHash("sha256").update("1").digest();
  const sealing = storeWith({
    payloadKeys: {
      current: () => ({ id: "k1", key: key as Buffer }),
      byId: () => key,
    },
  });
  await sealing.pending.accept(name, accept, [stored("m1", { headers: { secret: "s3cret" } })]);
  const [row] = await rows<{ payload: Buffer; headers: string; payload_key_id: string }>(
    "select payload, headers, payload_key_id from pending",
  );
  assert.equal(row?.payload_key_id, "k1");
  assert.ok(!row.payload.includes("body of") && !row.headers.includes("s3cret"));
  key = undefined;
  await assert.rejects(sealing.pending.accept(name, accept, [stored("m2")]), { code: "payload-key-missing" });
  assert.equal((await rows("select from message")).length, 1);
  // A store without the key hands it out and says why it cannot be read; the message stays where it is.
  const { messages } = await take();
  assert.equal((messages[0]?.sealed as { code?: string }).code, "payload-key-missing");
  assert.deepEqual([messages[0]?.payload, messages[0]?.headers], [null, {}]);
  assert.equal((await rows("select from pending")).length, 1);
});
