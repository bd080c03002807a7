import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createInbox, createQuarantine, quarantine } from "../../src/index.ts";
import { createRetentionAdmin } from "../../src/retention/retention.ts";
import { consumer, testStore } from "../quarantine/support.ts";

const ann = { by: "ann", why: "request of 3 May" };
const identity = (id: string) => ({ tenant: "", producer: "shop", id });
/** A body, and nothing else, holds this. */
const secret = "Jane Doe, born on 3 May";

async function eraseCase(t: TestContext) {
  const given = await testStore(t);
  const { pool, schema, store } = given;
  const inbox = createInbox({ store, consumer });
  const admin = createRetentionAdmin({ store });
  const message = (id: string, payload: string = secret, key?: string) => ({
    ...{ producer: "shop", id, payload, key },
    headers: { note: `header of ${secret}` },
  });
  /** The tables in which the text still stands, as whole rows or inside of bodies. */
  const leftIn = async (text: string): Promise<string[]> => {
    const { rows } = await pool.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = $1 and table_type = 'BASE TABLE' order by 1",
      [schema],
    );
    const found: string[] = [];
    const hex = Buffer.from(text).toString("hex");
    for (const { name } of rows) {
      const { rowCount } = await pool.query(
        `select from ${name} r where strpos(r::text, $1) > 0 or strpos(r::text, $2) > 0`,
        [text, hex],
      );
      if (rowCount! > 0) found.push(name);
    }
    return found;
  };
  return { ...given, inbox, admin, message, leftIn };
}

test("erases a body wherever it is kept, and the identity stays known", async (t) => {
  const { pool, store, inbox, admin, message, leftIn } = await eraseCase(t);
  // A conflict whose second body was discarded, one that was rejected and repaired, failed attempts that quote it.
  await inbox.process(message("order-17", "first"), async () => undefined);
  await inbox.process(message("order-17"), async () => undefined);
  await store.recordAttempt(
    { consumer, handlerVersion: "1" },
    {
      ...identity("order-17"),
      digest: (await pool.query<{ d: string }>("select digest::text as d from message")).rows[0]!.d,
      fingerprint: { digest: "", mode: "b" },
      code: "handler-failed",
      error: `no account for ${secret}`,
    },
  );
  const desk = createQuarantine({ store });
  const entries = await desk.list({});
  await desk.discard(entries[0]!.id, ann);
  await pool.query(
    `insert into answer (digest, consumer, request, status, headers, body) select digest, consumer, '', 200, '{}', convert_to($1, 'utf8') from message`,
    [secret],
  );
  await pool.query(
    `insert into repair (entry_id, digest, tenant, producer, message_id, payload, fingerprint, fingerprint_mode)
     select $1, digest, tenant, producer, message_id, convert_to($2, 'utf8'), '', 'b' from message`,
    [entries[0]!.id, secret],
  );
  assert.deepEqual(await leftIn(secret), ["answer", "attempt", "quarantine", "repair"]);
  const counts = await admin.erase(consumer, identity("order-17"), ann, { dryRun: true });
  assert.equal((await leftIn(secret)).length, 4, "a dry run erases nothing");
  const erased = await admin.erase(consumer, identity("order-17"), ann);
  assert.deepEqual(erased, counts);
  assert.deepEqual(erased, { pending: 0, quarantine: 1, repairs: 1, answers: 1, attempts: 1, effects: 0 });
  assert.deepEqual(await leftIn(secret), []);
  assert.equal(
    (await inbox.process(message("order-17", "first"), async () => undefined)).outcome,
    "duplicate",
  );
  const [decision] = await admin.decisions();
  assert.deepEqual(
    [decision?.kind, decision?.by, decision?.why, (JSON.parse(decision!.subject) as { id: string }).id],
    ["erase", "ann", "request of 3 May", "order-17"],
  );
  assert.deepEqual(Object.values(await admin.erase(consumer, identity("order-17"), ann)).filter(Boolean), []);
});

test("what is not handled yet is erased only with its discard, and is never applied then", async (t) => {
  const { inbox, admin, message, leftIn } = await eraseCase(t);
  await inbox.accept(message("pending"));
  await inbox.process(message("rejected"), async () => quarantine("unknown account"));
  for (const id of ["pending", "rejected"]) {
    await assert.rejects(admin.erase(consumer, identity(id), ann), { code: "decision-needs" });
  }
  assert.deepEqual(await leftIn(secret), ["pending", "quarantine"]);
  for (const id of ["pending", "rejected"]) {
    await admin.erase(consumer, identity(id), ann, { discard: true });
  }
  assert.deepEqual(await leftIn(secret), []);
  const applied: string[] = [];
  const work = inbox.work(async ({ id }) => void applied.push(id), { untilDrained: true });
  await work.finished;
  for (const id of ["pending", "rejected"]) {
    const again = await inbox.process(message(id), async () => void applied.push(id));
    assert.equal(again.settle, "ack");
  }
  assert.deepEqual(applied, []);
  assert.deepEqual(await leftIn(secret), [], "nor does a redelivery bring it back");
});

test("messages of its key go on behind a pending one that is erased", async (t) => {
  const { inbox, admin, message } = await eraseCase(t);
  const handled: string[] = [];
  for (const id of ["first", "second"]) await inbox.accept(message(id, `{"id":"${id}"}`, "jane"));
  let failed: () => void = () => undefined;
  const once = new Promise<void>((resolve) => (failed = resolve));
  const work = inbox.work(async ({ id }) => {
    if (id === "first") {
      failed();
      throw new Error("not now");
    }
    handled.push(id);
  });
  await once;
  await work.stop();
  await admin.erase(consumer, identity("first"), ann, { discard: true });
  await inbox.work(async ({ id }) => void handled.push(id), { untilDrained: true }).finished;
  assert.deepEqual(handled, ["second"]);
});

test("effects: what is to be sent is not erased, what destinations answered is", async (t) => {
  const { pool, inbox, admin, message, leftIn } = await eraseCase(t);
  await inbox.process(message("order-1", "x"), async (_message, { outbox }) => {
    outbox.send({ destination: "email", payload: secret });
    outbox.send({ id: "receipt-1", destination: "email", payload: secret });
  });
  await assert.rejects(admin.erase(consumer, identity("order-1"), ann), /1 effects of the message are still/);
  // The relay has sent them; one answer quoted the body.
  await pool.query(
    `insert into outbox_attempt (position, digest, attempt, destination, tenant, producer, effect_id, outcome, result)
     select position, digest, 1, destination, tenant, producer, effect_id, 'sent', $1 from outbox`,
    [secret],
  );
  await pool.query("delete from outbox");
  const effects = [{ destination: "email", id: "receipt-1" }];
  assert.equal((await admin.erase(consumer, identity("order-1"), ann)).effects, 1);
  assert.deepEqual(await leftIn(secret), ["outbox_attempt"]);
  assert.equal((await admin.erase(consumer, identity("order-1"), ann, { effects })).effects, 1);
  assert.deepEqual(await leftIn(secret), []);
});

test("effects: those that lie in a bundle are to be sent, too", async (t) => {
  const { pool, inbox, admin, message } = await eraseCase(t);
  await inbox.process(message("order-1", "x"), async (_message, { outbox }) => {
    for (let i = 0; i < 20; i++) outbox.send({ destination: "email", payload: secret });
  });
  const { rowCount } = await pool.query("select from outbox_bundle");
  assert.equal(rowCount, 1);
  await assert.rejects(
    admin.erase(consumer, identity("order-1"), ann),
    /20 effects of the message are still/,
  );
});

test("a message whose identity lies in the closed generation is erased as any other", async (t) => {
  const { pool, store, inbox, admin, message, leftIn } = await eraseCase(t);
  await inbox.process(message("order-1", "x"), async () => undefined);
  await pool.query(
    `insert into answer (digest, consumer, request, status, headers, body)
     select digest, consumer, '', 200, '{}', convert_to($1, 'utf8') from message`,
    [secret],
  );
  const rotation = { windowMs: 1_000, skewMs: 0, lockTimeoutMs: 5_000 };
  assert.equal(await store.retention.rotate(rotation), "rotated");
  assert.equal((await pool.query("select from message")).rowCount, 0);
  assert.equal((await admin.erase(consumer, identity("order-1"), ann)).answers, 1);
  assert.deepEqual(await leftIn(secret), []);
});

test("an erasure needs who and why, and an identity that is known", async (t) => {
  const { inbox, admin, message } = await eraseCase(t);
  await inbox.process(message("order-1", "x"), async () => undefined);
  await assert.rejects(admin.erase(consumer, identity("order-1"), { by: " ", why: "x" }), {
    code: "decision-needs",
  });
  await assert.rejects(admin.erase(consumer, identity("order-2"), ann), { code: "identity-unknown" });
  await assert.rejects(admin.erase("shipping", identity("order-1"), ann), { code: "identity-unknown" });
  assert.deepEqual(await admin.decisions(), []);
});

test("an erasure beside a worker that has the message in hand: it is applied or discarded, never both", async (t) => {
  const { pool, inbox, admin, message, leftIn } = await eraseCase(t);
  const ids = Array.from({ length: 40 }, (_, i) => `m${i}`);
  await inbox.accept(ids.map((id) => message(id)));
  const applied = new Set<string>();
  const work = inbox.work(async ({ id }, { tx }) => {
    await tx.query("select 1");
    applied.add(id);
  });
  await Promise.all(ids.map((id) => admin.erase(consumer, identity(id), ann, { discard: true })));
  await work.stop();
  const { rows } = await pool.query<{ id: string; applied: boolean; discarded: boolean }>(
    `select m.message_id as id, m.processed_at is not null as applied,
            exists (select from quarantine q where q.digest = m.digest and q.status = 'discarded') as discarded from message m`,
  );
  for (const row of rows) assert.notEqual(row.applied, row.discarded, row.id);
  for (const row of rows) if (row.applied) assert.ok(applied.has(row.id));
  assert.equal(rows.length, 40);
  assert.deepEqual(await leftIn(secret), []);
});
