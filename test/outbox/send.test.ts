import assert from "node:assert/strict";
import { test } from "node:test";
import { drizzle } from "drizzle-orm/node-postgres";
import { sql as drizzleSql } from "drizzle-orm";
import knex from "knex";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import fc from "fast-check";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { derivedEffectId, effectDigest, effectLane } from "../../src/outbox/effect-id.ts";
import type { EffectInput } from "../../src/outbox/effect.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";
import type { Tx } from "../../src/store/statement.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { testPool } from "../support/postgres.ts";
import { postgresJsClient } from "../store/drivers/subject.ts";
import { inTransaction, testOutbox } from "./support.ts";

const effect = (id: string, more: Partial<EffectInput> = {}): EffectInput => ({
  id,
  destination: "email",
  payload: `{"id":"${id}"}`,
  ...more,
});

const take = { leaseMs: 60_000, maxLanes: 64, maxEffects: 1_000, maxBytes: 1_000_000 };
const relayId = "00000000-0000-4000-8000-000000000001";

test("an effect is asked for if its transaction commits, and only then", async (t) => {
  const { outbox, commit, waiting, pool } = await testOutbox(t);
  await assert.rejects(
    commit(async (client) => {
      assert.deepEqual(await outbox.send(client, effect("undone")), { id: "undone", fresh: true });
      throw new Error("no");
    }),
    /no/,
  );
  assert.deepEqual(await waiting(), []);
  assert.equal((await pool.query("select 1 from outbox_id")).rowCount, 0);
  await commit((client) => outbox.send(client, effect("done")));
  assert.deepEqual(await waiting(), ["done"]);
  // What was rolled back is not remembered.
  assert.equal((await commit((client) => outbox.send(client, effect("undone")))).fresh, true);
});

test("what is no open transaction is refused before anything is written", async (t) => {
  const { outbox, pool, url, waiting } = await testOutbox(t);
  const noTransaction = { code: "not-a-transaction", message: /outbox\.send needs an open transaction/ };
  const client = await pool.connect();
  onTestEnd(t, () => client.release());
  const postgresJs = postgresJsClient(t, url);
  const plain: Tx = {
    query: (text, values) => client.query(text, values as unknown[]) as never,
  };
  for (const given of [pool, client, postgresJs, plain, undefined, {}]) {
    await assert.rejects(outbox.send(given, effect("m1")), noTransaction);
  }
  await client.query("begin");
  await assert.rejects(client.query("select nothing"));
  await assert.rejects(outbox.send(client, effect("m1")), noTransaction);
  await assert.rejects(outbox.send(plain, effect("m1")), noTransaction);
  await client.query("rollback");
  assert.deepEqual(await waiting(), []);
});

test("takes every kind of transaction: pg, postgres.js, Kysely, Drizzle, Knex and anything with query", async (t) => {
  const { outbox, pool, schema, url, commit, waiting } = await testOutbox(t);
  await commit((client) => outbox.send(client, effect("pg")));
  await commit((client) =>
    outbox.send(
      { query: (text: string, values: unknown[]) => client.query(text, values) },
      effect("query object"),
    ),
  );
  const postgresJs = postgresJsClient(t, url);
  await postgresJs.begin((sql) => outbox.send(sql, effect("postgres.js")));
  const db = new Kysely<never>({ dialect: new PostgresDialect({ pool: await testPool(t, { schema }) }) });
  await db.transaction().execute((trx) =>
    outbox.send(
      {
        query: async (text: string, values: unknown[] = []) => {
          const { rows, numAffectedRows } = await trx.executeQuery(CompiledQuery.raw(text, [...values]));
          return { rows, rowCount: Number(numAffectedRows ?? rows.length) };
        },
      },
      effect("kysely"),
    ),
  );
  await drizzle(pool).transaction((trx) =>
    outbox.send(
      {
        query: async (text: string, values: unknown[] = []) => {
          const chunks = text
            .split(/\$(\d+)/)
            .map((part, i) =>
              i % 2 === 0 ? drizzleSql.raw(part) : drizzleSql.param(values[Number(part) - 1]),
            );
          const { rows, rowCount } = await trx.execute(drizzleSql.join(chunks));
          return { rows, rowCount };
        },
      },
      effect("drizzle"),
    ),
  );
  const knexDb = knex({ client: "pg", connection: url });
  onTestEnd(t, () => knexDb.destroy());
  await knexDb.transaction(async (trx) => {
    const { client } = trx as unknown as { client: { acquireConnection(): Promise<unknown> } };
    await outbox.send(await client.acquireConnection(), effect("knex"));
  });
  assert.deepEqual(await waiting(), ["pg", "query object", "postgres.js", "kysely", "drizzle", "knex"]);
});

test("the same id is the same effect: asked for again it adds nothing, with another payload it is a conflict", async (t) => {
  const { outbox, commit, waiting, store, pool, attempts } = await testOutbox(t);
  await commit((client) => outbox.send(client, effect("m1")));
  assert.deepEqual(await commit((client) => outbox.send(client, effect("m1"))), { id: "m1", fresh: false });
  const other = effect("m1", { payload: "other" });
  await assert.rejects(
    commit((client) => outbox.send(client, other)),
    { code: "effect-conflict" },
  );
  for (const payload of [null, ""]) {
    await assert.rejects(
      commit((client) => outbox.send(client, { ...other, payload })),
      { code: "effect-conflict" },
    );
  }
  // Another destination, tenant or producer is another effect.
  const another = createOutbox({ store, producer: "billing" });
  await commit(async (client) => {
    assert.equal((await outbox.send(client, { ...other, destination: "sms" })).fresh, true);
    assert.equal((await outbox.send(client, { ...other, tenant: "acme" })).fresh, true);
    assert.equal((await another.send(client, other)).fresh, true);
  });
  assert.deepEqual(await waiting(), ["m1", "m1", "m1", "m1"]);

  // It stays so after it was sent.
  await store.outbox.openLanes(["email"]);
  const { effects } = await store.outbox.take("email", { relayId, ...take });
  await store.outbox.settle(
    "email",
    relayId,
    effects.map(({ lease, position }) => ({
      ...{ lease, position, action: "remove", outcome: "sent", delayMs: 0, counts: false },
      ...{ code: undefined, error: undefined, status: undefined, result: undefined, tookMs: undefined },
    })),
    [],
  );
  assert.equal((await attempts()).length, 3);
  assert.deepEqual(await waiting(), ["m1"]);
  assert.equal((await commit((client) => outbox.send(client, effect("m1")))).fresh, false);
  await assert.rejects(
    commit((client) => outbox.send(client, other)),
    { code: "effect-conflict" },
  );
  assert.equal((await pool.query("select 1 from outbox_id")).rowCount, 4);
});

test("many effects in one call keep their order; copies among them are one, and a conflict is seen", async (t) => {
  const { outbox, commit, waiting } = await testOutbox(t);
  const ids = Array.from({ length: 200 }, (_, i) => `m${i}`);
  const sent = await commit((client) =>
    outbox.sendAll(
      client,
      [...ids, "m7", "m0"].map((id) => effect(id)),
    ),
  );
  assert.deepEqual(
    sent.map(({ fresh }) => fresh),
    [...ids.map(() => true), false, false],
  );
  assert.deepEqual(await waiting(), ids);
  await assert.rejects(
    commit((client) => outbox.sendAll(client, [effect("x"), effect("y"), effect("x", { payload: "other" })])),
    { code: "effect-conflict" },
  );
  await assert.rejects(
    commit((client) => outbox.sendAll(client, [effect("x"), effect("m3", { payload: "other" })])),
    { code: "effect-conflict" },
  );
  assert.deepEqual(await waiting(), ids);
  assert.deepEqual(await commit((client) => outbox.sendAll(client, [])), []);
});

test("two transactions that ask for one effect at once: the second waits and adds nothing", async (t) => {
  const { outbox, pool, commit, waiting } = await testOutbox(t);
  for (const isolation of ["read committed", "repeatable read", "serializable"]) {
    const id = `once ${isolation}`;
    const second = await commit(async (client) => {
      await outbox.send(client, effect(id));
      const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
      const racing = inTransaction(
        pool,
        (other) => outbox.send(other, effect(id)),
        `begin isolation level ${isolation}`,
      );
      racing.catch(() => undefined);
      for (;;) {
        const blocked = await pool.query(
          "select from pg_stat_activity where $1::int = any (pg_blocking_pids(pid))",
          [rows[0]!.pid],
        );
        if (blocked.rowCount === 1) break;
      }
      return { racing };
    });
    if (isolation === "read committed") {
      assert.deepEqual(await second.racing, { id, fresh: false });
    } else {
      await assert.rejects(second.racing, { code: "40001" });
    }
    assert.equal((await waiting()).filter((waits) => waits === id).length, 1);
  }
});

test("anything a text may hold comes out as it went in, or is refused with what is wrong", async (t) => {
  const { outbox, pool, store } = await testOutbox(t);
  await store.outbox.openLanes(["odd"]);
  const client = await pool.connect();
  onTestEnd(t, () => client.release());
  const text = fc.string({ unit: "binary", maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(
      ...[text, text, fc.option(text), fc.option(text)],
      fc.dictionary(text, text),
      fc.option(fc.uint8Array()),
      async (id, tenant, key, type, headers, payload) => {
        await client.query("begin");
        try {
          const input = {
            ...{ id, tenant, destination: "odd", key: key ?? undefined, type: type ?? undefined },
            ...{ headers, payload },
          };
          const hostile = [id, tenant, type ?? ""].some((part) => part.includes("\0"));
          if (hostile || id === "") {
            await assert.rejects(outbox.send(client, input), { code: "invalid-effect" });
            return;
          }
          await outbox.send(client, input);
          const { rows } = await client.query<Record<string, unknown>>("select * from outbox");
          const [row] = rows;
          assert.deepEqual(
            [row!["effect_id"], row!["tenant"], row!["effect_type"], row!["payload"]],
            [id, tenant, type, payload === null ? null : Buffer.from(payload)],
          );
          if (key !== null && !key.includes("\0")) assert.equal(row!["effect_key"], key);
          assert.deepEqual(JSON.parse(String(row!["headers"])), { ...headers });
        } finally {
          await client.query("rollback");
        }
      },
    ),
    { numRuns: 150 },
  );
});

test("what cannot be an effect is refused before anything is sent, and the text says what is wrong", async (t) => {
  const { outbox, commit, waiting } = await testOutbox(t);
  const wrong: [unknown, RegExp][] = [
    [undefined, /must be an object/],
    [{ ...effect("a"), id: "" }, /has no id/],
    [{ ...effect("a"), id: "a\0b" }, /NUL/],
    [{ ...effect("a"), id: "x".repeat(1_025) }, /over 1024 bytes/],
    [{ ...effect("a"), id: 7 }, /must be a text/],
    [{ ...effect("a"), destination: "" }, /destination must be a name/],
    [{ ...effect("a"), destination: undefined }, /destination must be a name/],
    [{ ...effect("a"), destination: "\ud800" }, /destination must be a name/],
    [{ ...effect("a"), payload: undefined }, /needs a payload, or json/],
    [{ ...effect("a"), json: {} }, /not both/],
    [{ ...effect("a"), payload: { a: 1 } }, /must be bytes, a text or null/],
    [{ ...effect("a"), payload: "\ud800" }, /lone surrogate/],
    [{ id: "a", destination: "d", json: () => 1 }, /cannot be written as JSON/],
    [{ id: "a", destination: "d", json: 1n }, /cannot be written as JSON/],
    [{ ...effect("a"), delayMs: -1 }, /delayMs must be/],
    [{ ...effect("a"), delayMs: Number.NaN }, /delayMs must be/],
    [{ ...effect("a"), lifetimeMs: "1" }, /lifetimeMs must be/],
    [{ ...effect("a"), time: new Date(Number.NaN) }, /time must be a valid Date/],
    [{ ...effect("a"), headers: { a: 1 } }, /header/],
  ];
  for (const [input, says] of wrong) {
    await assert.rejects(
      commit((client) => outbox.send(client, input as EffectInput)),
      (error: Error & { code?: string }) => error.code === "invalid-effect" && says.test(error.message),
      String(says),
    );
  }
  assert.deepEqual(await waiting(), []);
  const store = postgres(await testPool(t));
  for (const producer of ["", "a\0", "x".repeat(513), 7, undefined]) {
    assert.throws(() => createOutbox({ store, producer: producer as string }), { code: "invalid-option" });
  }
  assert.throws(() => createOutbox({ store: {} as never, producer: "p" }), { code: "invalid-option" });
});

test("json is written with its content type, and headers of the outbox give way to the effect's own", async (t) => {
  const { store, commit, pool } = await testOutbox(t);
  const outbox = createOutbox({
    store,
    producer: "orders",
    headers: () => ({ traceparent: "00-1-2-01", source: "outbox" }),
  });
  await commit(async (client) => {
    await outbox.send(client, { id: "a", destination: "d", json: { a: 1 }, headers: { source: "own" } });
    await outbox.send(client, {
      ...{ id: "b", destination: "d", json: null },
      headers: { "Content-Type": "application/vnd.x+json" },
    });
  });
  const { rows } = await pool.query<{ headers: string; payload: Buffer }>(
    "select headers, payload from outbox order by position",
  );
  assert.deepEqual(
    rows.map(({ headers, payload }) => [JSON.parse(headers) as unknown, payload.toString()]),
    [
      [{ traceparent: "00-1-2-01", source: "own", "content-type": "application/json" }, '{"a":1}'],
      [{ traceparent: "00-1-2-01", source: "outbox", "Content-Type": "application/vnd.x+json" }, "null"],
    ],
  );
});

test("bodies are sealed where the store has keys, and open for the relay", async (t) => {
  const key = { id: "k1", key: Buffer.alloc(32, 7) };
  const payloadKeys = { current: () => key, byId: (id: string) => (id === "k1" ? key : undefined) };
  const { outbox, commit, pool, store, schema } = await testOutbox(t, { payloadKeys });
  await commit((client) => outbox.send(client, effect("m1", { headers: { secret: "open sesame" } })));
  const { rows } = await pool.query<{ text: string }>("select outbox::text as text from outbox");
  assert.doesNotMatch(rows[0]!.text, /sesame/);
  assert.doesNotMatch(rows[0]!.text, new RegExp(Buffer.from('{"id":"m1"}').toString("hex")));
  await store.outbox.openLanes(["email"]);
  const { effects } = await store.outbox.take("email", { relayId, ...take });
  assert.equal(Buffer.from(effects[0]!.payload!).toString(), '{"id":"m1"}');
  assert.deepEqual(effects[0]!.headers, { secret: "open sesame" });
  await store.outbox.settle("email", relayId, [], [effects[0]!.lease]);
  const blind = await postgres(pool, { schema }).outbox.take("email", { relayId, ...take });
  assert.equal((blind.effects[0]!.sealed as { code?: string }).code, "payload-key-missing");
});

test("ids, digests and lanes are what they were in the first release", () => {
  const identity = { tenant: "", producer: "orders", id: "m1" };
  assert.equal(effectDigest("email", identity), "71b527142eaced0e4dc6f0678bebb4e4");
  assert.equal(derivedEffectId("e1d2a5bd5b6a8f4a07e21f6b2ac2c2ab", 0), "e1d2a5bd5b6a8f4a07e21f6b2ac2c2ab-0");
  assert.equal(effectLane("ff000000000000000000000000000000", undefined), 63);
  assert.equal(effectLane("ff000000000000000000000000000000", "key"), effectLane("00", "key"));
});
