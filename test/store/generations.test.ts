import assert from "node:assert/strict";
import { test } from "node:test";
import type { IsolationLevel, NotNew } from "../../src/store/store.ts";
import type { StoredMessage } from "../../src/store/pending.ts";
import type { RotateOptions, Rotation } from "../../src/store/retention.ts";
import { entryOf, idsOf, name, stored, testStore, type TestStore } from "./support.ts";

const now = Date.now();
const decider = { by: "ann", why: "test" };

const rotate = ({ store }: TestStore, more: Partial<RotateOptions> = {}): Promise<Rotation> =>
  store.retention.rotate({ windowMs: 0, skewMs: 0, lockTimeoutMs: 10_000, ...more });

async function claim(
  { begin }: TestStore,
  messages: readonly StoredMessage[],
  isolation: IsolationLevel = "read committed",
): Promise<readonly NotNew[]> {
  const tx = await begin({ isolation });
  try {
    const { notNew } = await tx.claim(messages);
    await tx.commit();
    return notNew;
  } finally {
    await tx.rollback();
  }
}

const verdictsOf = (notNew: readonly NotNew[]): readonly string[] =>
  notNew.map(({ seen, late }) =>
    seen === undefined ? (late ? "late" : "gone") : seen.processed ? "duplicate" : "stored",
  );

const sent = (id: string): StoredMessage => stored(id, { sentAt: now - 60_000 });

for (const isolation of ["read committed", "repeatable read", "serializable"] as const) {
  test(`${isolation}: an identity is known in the open generation and the closed one, and late after that`, async (t) => {
    const db = await testStore(t);
    const m = sent("m");
    assert.deepEqual(await claim(db, [m], isolation), []);
    assert.equal(await rotate(db), "rotated");
    assert.deepEqual(verdictsOf(await claim(db, [m], isolation)), ["duplicate"]);
    assert.deepEqual(await claim(db, [sent("n")], isolation), [], "nothing is forgotten yet");
    assert.equal(await rotate(db), "rotated");
    assert.deepEqual(verdictsOf(await claim(db, [m], isolation)), ["late"]);
    assert.deepEqual(verdictsOf(await claim(db, [sent("n")], isolation)), ["duplicate"]);
    assert.deepEqual(await claim(db, [stored("young", { sentAt: now + 3_600_000 })], isolation), []);
    assert.equal((await db.store.retention.generations()).open, 2);
  });

  test(`${isolation}: a rotation waits for the claim in flight, and a copy behind it for both`, async (t) => {
    const db = await testStore(t);
    const first = await db.begin({ isolation });
    await first.claim([sent("m")]);
    const rotation = rotate(db);
    await db.untilBlocked();
    // Its look into the closed generation, or its snapshot, may be from before the rotation: it is refused and comes again.
    const copy = claim(db, [sent("m")], isolation).then(verdictsOf, (error: { code?: string }) => [
      error.code,
    ]);
    await db.untilBlocked(2);
    await first.commit();
    assert.equal(await rotation, "rotated");
    const verdicts = await copy;
    assert.ok(verdicts[0] === "duplicate" || verdicts[0] === "40001", verdicts[0]);
    assert.deepEqual(verdictsOf(await claim(db, [sent("m")], isolation)), ["duplicate"]);
  });
}

for (const isolation of ["repeatable read", "serializable"] as const) {
  test(`${isolation}: a snapshot from before a rotation is refused, also before the first one`, async (t) => {
    const db = await testStore(t);
    for (const id of ["a", "b", "c"]) {
      const tx = await db.begin({ isolation });
      // A snapshot that holds no lock on what is rotated.
      await tx.query({ text: "select 1" });
      await claim(db, [sent(id)]);
      assert.equal(await rotate(db), "rotated");
      await assert.rejects(tx.claim([sent(id)]), { code: "40001" }, id);
      await tx.rollback();
    }
  });

  test(`${isolation}: what was held before a rotation is refused at the end, and handled the next time`, async (t) => {
    const db = await testStore(t);
    await db.store.pending.accept(name, 1_000, [sent("m")]);
    const { messages } = await db.take();
    const tx = await db.begin({ isolation });
    await tx.hold(messages);
    await rotate(db);
    await assert.rejects(tx.finish(messages), { code: "40001" });
    await tx.rollback();
    assert.deepEqual(await db.handle(messages), ["m"]);
    assert.deepEqual(verdictsOf(await claim(db, [sent("m")])), ["duplicate"]);
  });
}

test("a session that has claimed before goes on in the new generation, with kept plans and prepared statements", async (t) => {
  const db = await testStore(t);
  const client = await db.session();
  await client.query("commit");
  const claimOne = `select claim('accounting', '1', 1000, array[$1::uuid], '{""}', '{p}', array[$1::text], '{"\\\\x01"}', '{b}', '{null}') as answer`;
  const once = async (id: string): Promise<unknown> =>
    (await client.query<{ answer: string | null }>({ name: "claim", text: claimOne, values: [id] })).rows[0]!
      .answer;
  const uuid = (n: number): string => `00000000-0000-0000-0000-${String(n).padStart(12, "0")}`;
  // Six executions: from then on a plan is generic.
  for (let i = 0; i < 8; i++) assert.equal(await once(uuid(i)), null);
  await rotate(db);
  assert.match(String(await once(uuid(1))), /true/);
  assert.equal(await once(uuid(100)), null);
  assert.deepEqual(
    await db.rows(
      "select (select count(*)::int from message) as open, (select count(*)::int from message_closed) as closed",
    ),
    [{ open: 1, closed: 8 }],
  );
  await rotate(db);
  assert.match(String(await once(uuid(100))), /true/);
  assert.equal(await once(uuid(1)), null, "without a time it is new again: its window is over");
});

/** A claim that has looked into the closed generation and has not inserted yet, while its message is claimed and closed. */
async function rotatedMeanwhile(db: TestStore): Promise<{ readonly claimed: Promise<readonly NotNew[]> }> {
  await db.store.retention.setWindow({ consumer: "other" }, 1);
  await db.store.retention.advance({ consumer: "other" }, { skewMs: 0, notAfter: new Date() });
  const rotator = await db.session();
  await rotator.query("lock table retention in access exclusive mode");
  const claimed = claim(db, [stored("m", { sentAt: now - 3_600_000 })]);
  claimed.catch(() => undefined);
  await db.untilBlocked();
  // Without its time it does not look at horizons, so it passes.
  assert.deepEqual(await claim(db, [stored("m")]), []);
  const { rows } = await rotator.query<{ rotation: string }>("select rotate(0, 0, 'infinity') as rotation");
  assert.equal(rows[0]!.rotation, "rotated");
  await rotator.query("commit");
  return { claimed };
}

test("a rotation between a claim's look and its insert is found out", async (t) => {
  const db = await testStore(t);
  await assert.rejects((await rotatedMeanwhile(db)).claimed, { code: "40001" });
});

test("without the second look at the mark such a claim would take the message again", async (t) => {
  const db = await testStore(t);
  const [claimFunction] = await db.rows<{ text: string }>(
    "select pg_get_functiondef(oid) as text from pg_proc where proname = 'claim' and pronamespace = current_schema()::regnamespace",
  );
  const text = claimFunction!.text.replaceAll("is distinct from mark", "is distinct from mark and false");
  assert.notEqual(text, claimFunction!.text);
  await db.pool.query(text);
  assert.deepEqual(await (await rotatedMeanwhile(db)).claimed, [], "it was taken for new");
});

test("what is stored goes along with each rotation and is handled once", async (t) => {
  const db = await testStore(t);
  await db.store.pending.accept(name, 1_000, [sent("a"), sent("b")]);
  await claim(db, [sent("applied")]);
  const { messages } = await db.take();
  const [first, second] = messages;
  // One is held across the rotation.
  const tx = await db.begin();
  await tx.hold([first!]);
  await rotate(db);
  await tx.finish([first!]);
  await tx.commit();
  await rotate(db);
  assert.deepEqual(verdictsOf(await claim(db, [sent(second!.id)])), ["stored"]);
  assert.deepEqual(await db.handle([second!]), [second!.id]);
  for (const id of idsOf(messages)) assert.deepEqual(verdictsOf(await claim(db, [sent(id)])), ["duplicate"]);
  assert.deepEqual(verdictsOf(await claim(db, [sent("applied")])), ["late"]);
});

test("what waits in quarantine keeps its identity through rotations, a conflict's applied one as well", async (t) => {
  const db = await testStore(t);
  const { store } = db;
  const conflict = { ...sent("c"), fingerprint: { mode: "b" as const, digest: "02".repeat(32) } };
  await claim(db, [sent("c")]);
  await store.quarantine(name, entryOf(sent("q")));
  await rotate(db);
  // The identity it is in conflict with is closed by now.
  await store.quarantine(name, entryOf(conflict, { code: "payload-conflict" }));
  await rotate(db);
  await rotate(db);
  assert.deepEqual(verdictsOf(await claim(db, [sent("q")])), ["stored"]);
  assert.deepEqual(verdictsOf(await claim(db, [sent("c")])), ["duplicate"]);
  const open = await store.quarantined.list({ status: "open" });
  const of = (id: string): string => open.find(({ messageId }) => messageId === id)!.id;
  assert.equal(typeof (await store.quarantined.decide("retry", of("q"), decider)), "string");
  const refused = await store.quarantined.decide("retry", of("c"), decider);
  assert.equal((refused as { code?: string }).code, "already-applied");
  assert.equal(typeof (await store.quarantined.decide("discard", of("c"), decider)), "string");
  const { messages } = await db.take();
  assert.deepEqual(await db.handle(messages), ["q"]);
});

test("nothing is stored or put off under an identity that the closed generation has", async (t) => {
  const db = await testStore(t);
  await claim(db, [sent("m")]);
  await rotate(db);
  assert.deepEqual(verdictsOf(await db.store.pending.accept(name, 1_000, [sent("m")])), ["duplicate"]);
  const put = await db.store.pending.putOff(name, {
    ...{
      message: sent("m"),
      pending: undefined,
      code: "handler-failed",
      error: "no",
      counts: true,
      park: false,
    },
    delayAfter: () => 1,
  });
  assert.equal(put.kind, "duplicate");
  assert.equal(await db.store.quarantine(name, entryOf(sent("m"))), "already-applied");
  assert.deepEqual(await db.rows("select from pending"), []);
  assert.deepEqual(await db.rows("select from message"), []);
});

test("a generation goes only when it is old enough for every window, by the clock of the sources", async (t) => {
  const db = await testStore(t);
  const hour = 3_600_000;
  assert.equal(await rotate(db, { windowMs: hour }), "rotated", "there is nothing to forget yet");
  assert.equal(await rotate(db, { windowMs: hour }), "too young");
  assert.equal(await rotate(db, { notAfter: new Date(now - hour) }), "too young");
  await db.store.retention.setWindow({ consumer: "other" }, hour);
  assert.equal(await rotate(db, { windowMs: 0 }), "window too short");
  await db.store.retention.setWindow({ consumer: "other" }, undefined);
  assert.equal(await rotate(db, { windowMs: 0 }), "window too short", "it is to be kept for ever");
  assert.equal((await db.store.retention.generations()).open, 1);
});

test("a rotation that does not get its locks gives up, and claims go on", async (t) => {
  const db = await testStore(t);
  const tx = await db.begin();
  await tx.claim([sent("m")]);
  assert.equal(await rotate(db, { lockTimeoutMs: 50 }), "busy");
  assert.deepEqual(await claim(db, [sent("n")]), []);
  await tx.commit();
  assert.deepEqual(await db.store.retention.generations(), { open: undefined, closedAt: undefined });
});

test("a rotation that is rolled back leaves a mark that no later change has again", async (t) => {
  const db = await testStore(t);
  const markOf = async (): Promise<number> =>
    Number(
      (await db.rows<{ mark: string }>("select pg_sequence_last_value('horizon_mark') as mark"))[0]!.mark,
    );
  const session = await db.session();
  await session.query("select rotate(0, 0, 'infinity')");
  await session.query("rollback");
  const left = await markOf();
  assert.ok(left > 0, "it was set before the rollback");
  assert.deepEqual(await claim(db, [sent("m")]), [], "claims go on as before");
  await db.store.retention.setWindow({ consumer: name.consumer }, 1_000);
  assert.ok((await markOf()) > left);
});

const noteReach = ({ store }: TestStore): Promise<boolean> =>
  store.retention.noteReach({ lockTimeoutMs: 10_000 });

/** Shortest first, then by bytes. */
const inReachOrder = ["a", "b", "aa", "ab", "a".repeat(1024)] as const;

for (const isolation of ["read committed", "repeatable read"] as const) {
  test(`${isolation}: what lies beyond the reach of the closed generation is not looked for, all else is`, async (t) => {
    const db = await testStore(t);
    assert.equal(await noteReach(db), false, "nothing is closed");
    await claim(db, [sent("b"), sent("ab")], isolation);
    await rotate(db);
    assert.deepEqual(verdictsOf(await claim(db, [sent("b")], isolation)), ["duplicate"], "nothing is noted");
    assert.deepEqual([await noteReach(db), await noteReach(db)], [true, false]);
    const both = await claim(db, inReachOrder.slice(1, 4).map(sent), isolation);
    assert.deepEqual(verdictsOf(both), ["duplicate", "duplicate"], "a batch of ids within");
    const looker = await db.session();
    await looker.query("lock table message_closed in access exclusive mode");
    assert.deepEqual(await claim(db, [sent("ac")], isolation), [], "it did not look");
    const within = claim(db, [sent("a")], isolation);
    await db.untilBlocked();
    const other = claim(db, [{ ...sent("zz"), producer: "other" }], isolation);
    await db.untilBlocked(2);
    await looker.query("commit");
    assert.deepEqual([await within, await other], [[], []]);
  });
}

test("a reach says nothing once another generation is closed, and the longest id keeps all others within", async (t) => {
  const db = await testStore(t);
  await claim(db, [sent("a")]);
  await rotate(db);
  await noteReach(db);
  await claim(db, inReachOrder.slice(1).map(sent));
  await rotate(db);
  for (const id of inReachOrder.slice(1))
    assert.deepEqual(verdictsOf(await claim(db, [sent(id)])), ["duplicate"]);
  await noteReach(db);
  for (const id of inReachOrder.slice(1))
    assert.deepEqual(verdictsOf(await claim(db, [sent(id)])), ["duplicate"]);
});

test("without its number such a reach would let a message be taken again", async (t) => {
  const db = await testStore(t);
  const [looks] = await db.rows<{ text: string }>(
    "select pg_get_functiondef(oid) as text from pg_proc where proname = 'in_closed' and pronamespace = current_schema()::regnamespace",
  );
  const text = looks!.text.replaceAll("r.generation = open_generation", "true");
  assert.notEqual(text, looks!.text);
  await db.pool.query(text);
  // Without a time no horizon is in its way.
  await claim(db, [stored("a")]);
  await rotate(db);
  await noteReach(db);
  await claim(db, [stored("b")]);
  await rotate(db);
  assert.deepEqual(await claim(db, [stored("b")]), [], "it was taken for new");
});

test("a rotation that is rolled back leaves a number for which nothing is noted, until it is noted anew", async (t) => {
  const db = await testStore(t);
  await claim(db, [sent("a")]);
  await rotate(db);
  await noteReach(db);
  const session = await db.session();
  await session.query("select rotate(0, 0, 'infinity')");
  const noted = db.store.retention.noteReach({ lockTimeoutMs: 10_000 });
  await db.untilBlocked();
  await session.query("rollback");
  assert.equal(await noted, true);
  assert.deepEqual(verdictsOf(await claim(db, [sent("a")])), ["duplicate"]);
  assert.deepEqual(
    await db.rows(
      "select last_id, generation = pg_sequence_last_value('generation') as now from closed_reach",
    ),
    [{ last_id: "a", now: true }],
  );
});

test("of a consumer with more than a thousand producers no reach is noted", async (t) => {
  const db = await testStore(t);
  await db.pool.query(
    `insert into message select gen_random_uuid(), now(), c, '', 'p' || n, n::text, '', 'b', '1'
       from generate_series(1, 1001) n, unnest(array['many', 'one']) c where c = 'many' or n = 10`,
  );
  await rotate(db);
  await noteReach(db);
  assert.deepEqual(await db.rows("select consumer, producer, last_id from closed_reach"), [
    { consumer: "one", producer: "p10", last_id: "10" },
  ]);
});

test("people see both generations", async (t) => {
  const db = await testStore(t);
  await claim(db, [sent("a")]);
  await rotate(db);
  await claim(db, [sent("b")]);
  assert.deepEqual(await db.rows("select message_id, state from seen order by 1"), [
    { message_id: "a", state: "processed" },
    { message_id: "b", state: "processed" },
  ]);
  const [, digests] = await db.rows<{ digest: string }>("select digest from ledger order by message_id");
  assert.equal(digests?.digest.replaceAll("-", ""), sent("b").digest);
});

test("a generation of 200,000 identities goes whole and leaves nothing to vacuum", async (t) => {
  const db = await testStore(t);
  await db.pool.query(
    `insert into message select gen_random_uuid(), now(), 'c', '', 'p', n::text, '', 'b', '1' from generate_series(1, 200000) n`,
  );
  await rotate(db);
  const start = performance.now();
  assert.equal(await rotate(db), "rotated");
  t.diagnostic(`rotated in ${Math.round(performance.now() - start)} ms`);
  const [size] = await db.rows<{ bytes: string }>(
    "select pg_total_relation_size('message') + pg_total_relation_size('message_closed') as bytes",
  );
  assert.ok(Number(size!.bytes) < 100_000);
});
