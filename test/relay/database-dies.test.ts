import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { pgbouncerPath, startPgbouncer } from "../support/pgbouncer.ts";
import { testPool } from "../support/postgres.ts";
import { ownServer } from "../support/server.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";
import { bundle, inTransaction, testOutbox } from "../outbox/support.ts";
import { effect, until } from "./support.ts";

const keys = 5;
const idsOf = (round: number): readonly string[] => Array.from({ length: 100 }, (_, i) => `${round}-${i}`);
const keyOf = (id: string): string => `k${Number(id.split("-")[1]) % keys}`;

test("the database is killed under a relay: it goes on by itself, loses nothing, and keeps each key's order", async (t) => {
  const server = await ownServer(t);
  const pool = new pg.Pool({ connectionString: server.url, max: 8, pipeline: true });
  pool.on("error", () => undefined);
  onTestEnd(t, () => pool.end());
  await migrate(pool);
  const store = postgres(pool);
  const outbox = createOutbox({ store, producer: "orders" });
  const arrived: string[] = [];
  let hold: Promise<void> | undefined;
  const relay = createRelay({
    store,
    destinations: {
      there: async ({ id }) => {
        await hold;
        arrived.push(id);
      },
    },
    leaseMs: 1_000,
    stopTimeoutMs: 2_000,
  });
  onTestEnd(t, () => relay.stop());
  await relay.start();
  const ask = (round: number): Promise<unknown> =>
    inTransaction(pool, (client) =>
      outbox.sendAll(
        client,
        idsOf(round).map((id) => effect(id, { key: keyOf(id) })),
      ),
    );
  for (let round = 0; round < 3; round++) {
    await ask(round);
    await until(() => arrived.length > round * 100);
    // What is in hand now gets its answer while nobody can write it down.
    let open: () => void = () => undefined;
    hold = new Promise((resolve) => (open = resolve));
    await server.kill();
    hold = undefined;
    open();
    await server.restart();
  }
  const { rows } = await until(
    () =>
      pool.query<{ n: number }>("select count(*)::int as n from inbox.outbox").catch(() => ({ rows: [] })),
    ({ rows: [row] }) => row?.n === 0,
  );
  assert.deepEqual(rows, [{ n: 0 }]);
  const first = arrived.filter((id, i) => arrived.indexOf(id) === i);
  const expected = [0, 1, 2].flatMap(idsOf);
  assert.deepEqual([...first].sort(), [...expected].sort());
  for (let key = 0; key < keys; key++) {
    const own = (id: string): boolean => keyOf(id) === `k${key}`;
    assert.deepEqual(first.filter(own), expected.filter(own));
  }
});

test("two relays behind PgBouncer in transaction mode share the work in order", async (t) => {
  if (!requireOrSkip(t, pgbouncerPath() !== undefined, "pgbouncer is not installed")) return;
  const place = await testOutbox(t);
  const pool = await testPool(t, { url: await startPgbouncer(t, place.url), max: 12 });
  const store = postgres(pool, { schema: place.schema });
  const arrived: string[] = [];
  const relays = [0, 1].map(() =>
    createRelay({ store, destinations: { there: async ({ id }) => void arrived.push(id) } }),
  );
  for (const relay of relays) onTestEnd(t, () => relay.stop());
  await Promise.all(relays.map((relay) => relay.start()));
  for (let round = 0; round < 4; round++) {
    const effects = idsOf(round).map((id) => effect(id, { key: keyOf(id) }));
    await place.commit(async (client) => {
      if (round % 2 === 0) await place.outbox.sendAll(client, effects);
      else await bundle(place, client, effects);
    });
  }
  await until(place.waiting, (waiting) => waiting.length === 0);
  const expected = [0, 1, 2, 3].flatMap(idsOf);
  assert.equal(arrived.length, expected.length);
  for (let key = 0; key < keys; key++) {
    const own = (id: string): boolean => keyOf(id) === `k${key}`;
    assert.deepEqual(arrived.filter(own), expected.filter(own));
  }
});
