import type pg from "pg";
import { readEffect } from "../../src/outbox/check-effect.ts";
import type { EffectInput } from "../../src/outbox/effect.ts";
import { createOutbox, type Outbox } from "../../src/outbox/outbox.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { bundleStatement } from "../../src/store/postgres/outbox-bundle.ts";
import { postgres, type PostgresOptions } from "../../src/store/postgres/postgres.ts";
import { quoteSchema } from "../../src/store/postgres/schema-name.ts";
import { outboxSql } from "../../src/store/postgres/sql/outbox.ts";
import type { Store } from "../../src/store/store.ts";
import type { Scope } from "../support/cleanup.ts";
import { testDatabase, type TestDatabase, type TestPoolOptions } from "../support/postgres.ts";

export interface TestOutbox extends TestDatabase {
  readonly store: Store;
  readonly outbox: Outbox;
  /** Runs `work` in a transaction of its own and commits it. */
  readonly commit: <T>(work: (client: pg.PoolClient) => Promise<T>) => Promise<T>;
  /** Ids of the effects that wait, in their order; those that a relay has yet to unpack are `…`. */
  readonly waiting: () => Promise<readonly string[]>;
  /** What became of attempts, in order: `id: outcome`. */
  readonly attempts: () => Promise<readonly string[]>;
}

/** Asks for effects as a transaction does that asks for many in its handlers: in one row. */
export async function bundle(
  { schema }: Pick<TestOutbox, "schema">,
  client: pg.PoolClient,
  effects: readonly EffectInput[],
): Promise<void> {
  const asked = effects.map((effect) => readEffect("orders", effect.id, effect, undefined));
  const { text, values } = bundleStatement(outboxSql(quoteSchema(schema)), asked);
  await client.query(text, [...values]);
}

/** An outbox over tables of the test's own. */
export async function testOutbox(
  t: Scope,
  options: PostgresOptions = {},
  poolOptions: TestPoolOptions = {},
): Promise<TestOutbox> {
  const database = await testDatabase(t, poolOptions);
  const { pool, schema } = database;
  await migrate(pool, { schema });
  const store = postgres(pool, { schema, ...options });
  return {
    ...database,
    store,
    outbox: createOutbox({ store, producer: "orders" }),
    commit: (work) => inTransaction(pool, work),
    async waiting() {
      const { rows } = await pool.query<{ effect_id: string }>(
        `select effect_id, position from outbox
         union all select '…', position from outbox_bundle order by position`,
      );
      return rows.map((row) => row.effect_id);
    },
    async attempts() {
      const { rows } = await pool.query<{ text: string }>(
        "select effect_id || ': ' || outcome as text from outbox_attempt order by at, position",
      );
      return rows.map((row) => row.text);
    },
  };
}

export async function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
  begin = "begin",
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query(begin);
    const result = await work(client);
    const { command } = await client.query("commit");
    if (command !== "COMMIT") throw new Error(`The server answered COMMIT with ${command}.`);
    return result;
  } catch (error) {
    await client.query("rollback").catch((lost: unknown) => (broken = lost as Error));
    throw error;
  } finally {
    client.release(broken);
  }
}
