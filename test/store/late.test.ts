import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { onTestEnd } from "../support/cleanup.ts";
import type { IsolationLevel, NotNew } from "../../src/store/store.ts";
import type { StoredMessage } from "../../src/store/pending.ts";
import { name, stored, testStore, type TestStore } from "./support.ts";

const longAgo = Date.now() - 3_600_000;
const isolations: readonly IsolationLevel[] = ["read committed", "repeatable read", "serializable"];

/** Moves the consumer's horizon to about now. */
async function moveHorizon({ store }: TestStore, producer?: string): Promise<void> {
  const scope = { consumer: name.consumer, producer };
  await store.retention.setWindow(scope, 1);
  await store.retention.advance(scope, { skewMs: 0 });
}

/** Forgets an identity as a batch does: behind the mark of its horizon, in one transaction. */
async function forget({ pool }: TestStore, message: StoredMessage): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin isolation level read committed");
    await client.query("select publish_horizon()");
    const { rowCount } = await client.query("delete from message where digest = $1::uuid", [message.digest]);
    assert.equal(rowCount, 1);
    await client.query("commit");
  } finally {
    client.release();
  }
}

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

const lateOnes = (notNew: readonly NotNew[]): readonly string[] =>
  notNew.filter(({ late }) => late).map(({ digest }) => digest);

/** Two messages in the order in which a claim inserts them. */
const inOrder = (a: StoredMessage, b: StoredMessage): readonly [StoredMessage, StoredMessage] =>
  a.digest < b.digest ? [a, b] : [b, a];

test("what was sent before the horizon is late if it is not in the ledger, and what it was if it is", async (t) => {
  const db = await testStore(t);
  const [known, unknown] = [stored("known", { sentAt: longAgo }), stored("unknown", { sentAt: longAgo })];
  const young = stored("young", { sentAt: Date.now() + 3_600_000 });
  const timeless = stored("timeless");
  await claim(db, [known]);
  await moveHorizon(db);
  const notNew = await claim(
    db,
    [known, unknown, young, timeless].sort((a, b) => (a.digest < b.digest ? -1 : 1)),
  );
  assert.deepEqual(
    notNew.map(({ digest, late, seen }) => [digest, late, seen?.processed]).sort(),
    [
      [known.digest, false, true],
      [unknown.digest, true, undefined],
    ].sort(),
  );
  assert.deepEqual(
    lateOnes(await claim(db, [unknown])),
    [unknown.digest],
    "it was not taken by being asked for",
  );
  assert.deepEqual(
    (await db.rows<{ message_id: string }>("select message_id from message order by 1")).map(
      (row) => row.message_id,
    ),
    ["known", "timeless", "young"],
  );
});

test("storing for later goes by the horizon too, also in somebody else's transaction", async (t) => {
  const db = await testStore(t);
  const old = stored("old", { sentAt: longAgo });
  await moveHorizon(db);
  assert.deepEqual(lateOnes(await db.store.pending.accept(name, 1_000, [old, stored("new")])), [old.digest]);
  const client = await db.session();
  const joined = db.store.join(name, client, 1_000, "test");
  assert.deepEqual(lateOnes(await joined.accept([old])), [old.digest]);
  assert.deepEqual(lateOnes((await joined.claim([old])).notNew), [old.digest]);
  assert.deepEqual(
    await db.rows("select message_id from pending"),
    [{ message_id: "new" }],
    "nothing of the late one is kept by the ledger itself",
  );
});

test("a producer's own window decides for it, and begins with what its consumer has forgotten", async (t) => {
  const db = await testStore(t);
  await db.store.retention.setWindow({ consumer: name.consumer, producer: "partner" }, 30 * 86_400_000);
  await moveHorizon(db);
  const shop = stored("a", { sentAt: longAgo });
  const partner = { ...stored("b", { sentAt: longAgo }), producer: "partner" };
  assert.deepEqual(lateOnes(await claim(db, inOrder(shop, partner))), [shop.digest]);
  const begun = await db.store.retention.setWindow({ consumer: name.consumer, producer: "new" }, 86_400_000);
  assert.ok(begun.horizon !== undefined && begun.horizon.getTime() > longAgo);
  const late = { ...stored("c", { sentAt: longAgo }), producer: "new" };
  assert.deepEqual(lateOnes(await claim(db, [late])), [late.digest]);
});

test("a horizon goes forward only, and not beyond what it is allowed", async (t) => {
  const { store } = await testStore(t);
  const scope = { consumer: "other" };
  assert.equal(await store.retention.advance(scope, { skewMs: 0 }), undefined);
  await store.retention.setWindow(scope, 1_000);
  const notAfter = new Date(longAgo);
  const first = await store.retention.advance(scope, { skewMs: 5_000, notAfter });
  assert.deepEqual([first?.forgottenTo, first?.horizon?.getTime()], [notAfter, longAgo + 5_000]);
  const back = await store.retention.advance(scope, { skewMs: 0, notAfter: new Date(longAgo - 1) });
  assert.deepEqual(back, first);
  const kept = await store.retention.setWindow(scope, undefined);
  assert.deepEqual(kept, { ...first!, windowMs: undefined });
  assert.deepEqual(
    await store.retention.advance(scope, { skewMs: 0 }),
    kept,
    "without a window nothing moves",
  );
  assert.deepEqual(await store.retention.list("other"), [kept]);
});

/** A claim of two messages that waits for the first one while the second one is forgotten. */
async function forgottenMeanwhile(
  t: TestContext,
  isolation: IsolationLevel,
  prepare: (db: TestStore) => Promise<void> = () => Promise.resolve(),
): Promise<{
  readonly db: TestStore;
  readonly claimed: Promise<readonly NotNew[]>;
  readonly forgotten: StoredMessage;
}> {
  const db = await testStore(t);
  await prepare(db);
  const [held, forgotten] = inOrder(stored("1", { sentAt: longAgo }), stored("2", { sentAt: longAgo }));
  await claim(db, [forgotten]);
  const holder = await db.begin();
  await holder.claim([held]);
  const claimed = claim(db, [held, forgotten], isolation);
  claimed.catch(() => undefined);
  await db.untilBlocked();
  await moveHorizon(db);
  await forget(db, forgotten);
  await holder.rollback();
  return { db, claimed, forgotten };
}

for (const isolation of isolations) {
  test(`${isolation}: a claim under way while its message is forgotten is refused, and is late the next time`, async (t) => {
    const { db, claimed, forgotten } = await forgottenMeanwhile(t, isolation);
    await assert.rejects(claimed, { code: "40001" });
    assert.deepEqual(lateOnes(await claim(db, [forgotten], isolation)), [forgotten.digest]);
  });

  test(`${isolation}: a claim of what is being forgotten meets the row or the horizon`, async (t) => {
    const db = await testStore(t);
    const message = stored("m", { sentAt: longAgo });
    await claim(db, [message]);
    await moveHorizon(db);
    const batch = await db.session();
    await batch.query("select publish_horizon()");
    await batch.query("delete from message");
    const before = await claim(db, [message], isolation);
    assert.deepEqual(
      before.map(({ seen, late }) => [seen?.processed, late]),
      [[true, false]],
    );
    await batch.query("commit");
    assert.deepEqual(lateOnes(await claim(db, [message], isolation)), [message.digest]);
  });
}

test("without the second look at the mark such a claim would take the message again", async (t) => {
  const { claimed } = await forgottenMeanwhile(t, "read committed", async ({ pool }) => {
    const { rows } = await pool.query<{ text: string }>(
      "select pg_get_functiondef(oid) as text from pg_proc where proname = 'claim' and pronamespace = current_schema()::regnamespace",
    );
    const text = rows[0]!.text.replaceAll("is distinct from mark", "is distinct from mark and false");
    assert.notEqual(text, rows[0]!.text);
    await pool.query(text);
  });
  assert.deepEqual(await claimed, [], "both were taken for new");
});

for (const isolation of ["repeatable read", "serializable"] as const) {
  test(`${isolation}: a snapshot from before the horizon moved is refused`, async (t) => {
    const db = await testStore(t);
    const message = stored("m", { sentAt: longAgo });
    await claim(db, [message]);
    const tx = await db.begin({ isolation });
    await tx.query({ text: "select count(*) from message" });
    await moveHorizon(db);
    await forget(db, message);
    await assert.rejects(tx.claim([message]), { code: "40001" });
    await tx.rollback();
  });

  test(`${isolation}: a snapshot from between the horizon and the forgetting still sees the row, and answers by it`, async (t) => {
    const db = await testStore(t);
    const message = stored("m", { sentAt: longAgo });
    await claim(db, [message]);
    await moveHorizon(db);
    const tx = await db.begin({ isolation });
    await tx.query({ text: "select count(*) from message" });
    await forget(db, message);
    const { notNew } = await tx.claim([message]);
    assert.deepEqual(
      notNew.map(({ seen, late }) => [seen?.processed, late]),
      [[true, false]],
    );
    await tx.commit();
  });
}

test("a change of retention and a batch that forgets wait for each other, so the mark never goes back", async (t) => {
  const db = await testStore(t);
  await moveHorizon(db);
  const batch = await db.session();
  await batch.query("select publish_horizon()");
  const moved = moveHorizon(db);
  await db.untilBlocked();
  await batch.query("commit");
  await moved;
  const [marks] = await db.rows<{ same: boolean }>(
    "select g.mark = s.last_value as same from retention_guard g, horizon_mark s",
  );
  assert.equal(marks?.same, true);
});

test("a role that was granted the tables alone sees the mark all the same", async (t) => {
  const db = await testStore(t);
  const { pool, schema } = db;
  await moveHorizon(db);
  const role = `${schema}_role`;
  await pool.query(`create role ${role}`);
  onTestEnd(t, async () => {
    await pool.query(`drop owned by ${role}`);
    await pool.query(`drop role ${role}`);
  });
  await pool.query(`grant usage on schema ${schema} to ${role}`);
  await pool.query(`grant all on all tables in schema ${schema} to ${role}`);
  const client = await db.session();
  await client.query(`set local role ${role}`);
  const old = stored("old", { sentAt: longAgo });
  const { notNew } = await db.store.join(name, client, 1_000, "test").claim([old]);
  assert.deepEqual(lateOnes(notNew), [old.digest]);
});
