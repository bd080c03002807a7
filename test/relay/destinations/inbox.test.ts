import assert from "node:assert/strict";
import { test } from "node:test";
import { createInbox } from "../../../src/inbox/create-inbox.ts";
import { inboxDestination } from "../../../src/relay/destinations/inbox.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import { postgres } from "../../../src/store/postgres/postgres.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { ownServer, testDatabase } from "../../support/postgres.ts";
import { testOutbox } from "../../outbox/support.ts";
import { effect, startRelay, until } from "../support.ts";

async function receiver(t: Scope, url?: string) {
  const { pool, schema } = await testDatabase(t, { url });
  await migrate(pool, { schema });
  await pool.query("create table receipt (n bigint generated always as identity, id text not null)");
  const store = postgres(pool, { schema });
  return { pool, store, inbox: createInbox({ store, consumer: "ledger" }) };
}

test("effects become messages of another inbox, each applied once and a key in its order", async (t) => {
  const place = await testOutbox(t);
  const there = await receiver(t);
  const work = there.inbox.work(async (message, { tx }) => {
    await tx.query("insert into receipt (id) values ($1)", [
      `${message.key} ${message.id} ${message.text()}`,
    ]);
  });
  onTestEnd(t, () => work.stop().then(() => undefined));
  await startRelay(t, place, { there: inboxDestination({ store: there.store, consumer: "ledger" }) });
  const ids = Array.from({ length: 300 }, (_, i) => `m${i}`);
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      ids.map((id, i) => effect(id, { key: String(i % 7), payload: id })),
    ),
  );
  const receipts = () =>
    there.pool
      .query<{ id: string }>("select id from receipt order by n")
      .then(({ rows }) => rows.map(({ id }) => id));
  await until(receipts, (rows) => rows.length >= 300);
  assert.deepEqual(await place.waiting(), []);
  for (let key = 0; key < 7; key++) {
    assert.deepEqual(
      (await receipts()).filter((line) => line.startsWith(`${key} `)),
      ids.filter((_, i) => i % 7 === key).map((id) => `${key} ${id} ${id}`),
    );
  }
  const { rows } = await there.pool.query("select distinct producer, tenant, consumer from message");
  assert.deepEqual(rows, [{ producer: "orders", tenant: "", consumer: "ledger" }]);
});

test("what is there already is sent if it is the same, and refused if it is not; its neighbours go their way", async (t) => {
  const place = await testOutbox(t);
  const there = await receiver(t);
  await there.inbox.accept({ producer: "orders", id: "same", payload: '{"id":"same"}' });
  await there.inbox.accept({ producer: "orders", id: "other", payload: "something else" });
  await startRelay(t, place, { there: inboxDestination({ store: there.store, consumer: "ledger" }) });
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      ["before", "same", "other", "after"].map((id) => effect(id)),
    ),
  );
  await until(place.attempts, (attempts) => attempts.length === 4);
  const { rows } = await place.pool.query<{ line: string }>(
    "select concat_ws(' ', effect_id, outcome, result, error) as line from outbox_attempt order by position",
  );
  assert.deepEqual(
    rows.map(({ line }) => line),
    [
      "before sent",
      "same sent known",
      "other rejected The receiving inbox has this message with another payload.",
      "after sent",
    ],
  );
  assert.deepEqual(await place.waiting(), ["other"]);
});

test("a receiving database that dies and comes back has everything once, and nothing counts against an effect", async (t) => {
  const place = await testOutbox(t);
  const server = await ownServer(t);
  const there = await receiver(t, server.url);
  const relay = await startRelay(t, place, {
    there: {
      ...inboxDestination({ store: there.store, consumer: "ledger", maxBatch: 10, retryDelayMs: 20 }),
      maxAttempts: 1,
    },
  });
  const ids = Array.from({ length: 400 }, (_, i) => `m${i}`);
  const send = (from: number, to: number) =>
    place.commit((client) =>
      place.outbox.sendAll(
        client,
        ids.slice(from, to).map((id) => effect(id, { key: id.slice(-1) })),
      ),
    );
  await send(0, 200);
  await until(place.attempts, (attempts) => attempts.length > 20);
  await server.kill();
  await send(200, 400);
  await until(() => relay.health()["there"]?.failed !== 0);
  await server.restart();
  await until(place.waiting, (waiting) => waiting.length === 0);
  const { rows } = await there.pool.query<{ message_id: string }>(
    "select message_id from pending order by position",
  );
  assert.equal(rows.length, 400);
  for (let key = 0; key < 10; key++) {
    assert.deepEqual(
      rows.map((row) => row.message_id).filter((id) => id.endsWith(String(key))),
      ids.filter((id) => id.endsWith(String(key))),
    );
  }
  const counted = await place.pool.query("select 1 from outbox_attempt where code = 'attempts-exhausted'");
  assert.equal(counted.rowCount, 0);
});

test("options that break their rule are refused", async (t) => {
  const { store } = await testOutbox(t);
  for (const wrong of [
    { store: {}, consumer: "c" },
    { store, consumer: "" },
    { store, consumer: "a\0" },
    { store, consumer: "x".repeat(129) },
  ]) {
    assert.throws(() => inboxDestination(wrong as never), { code: "invalid-option" });
  }
});
