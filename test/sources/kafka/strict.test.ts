import assert from "node:assert/strict";
import test from "node:test";
import { createInbox, postgres } from "../../../src/index.ts";
import { kafka } from "../../../src/sources/kafka/kafka.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import { testDatabase } from "../../support/postgres.ts";
import { assertCommitted, clients, eventually, identity, testTopic } from "./support.ts";
import { chosenClients } from "../../services/kafka-clients.ts";

// Strict order on the real broker: an owner that is slow to give a partition back.

for (const [name, makeClient] of chosenClients(clients)) {
  test(`${name}: with strict order the new owner begins when the old one's transaction has ended, and nothing of the old one comes later`, async (t) => {
    const at = await testTopic(t);
    if (at === undefined) return;
    const { schema, pool } = await testDatabase(t, { max: 12 });
    await migrate(pool, { schema });
    await pool.query("create table applied (position bigserial, id text, by text)");
    let entered = (): void => undefined;
    let open = (): void => undefined;
    const inHandler = new Promise<void>((resolve) => (entered = resolve));
    const opened = new Promise<void>((resolve) => (open = resolve));
    t.after(() => open());

    const member = async (by: string, before: () => Promise<void> | void) => {
      const client = await makeClient(t, at);
      if (client === undefined) return undefined;
      const source = kafka({
        ...{ client, topics: [at.topic], groupId: at.groupId, identity, order: "strict" },
        ...{ commitIntervalMs: 20, revokeTimeoutMs: 300 },
      });
      const store = postgres(pool, { schema });
      const inbox = createInbox({ store, consumer: "accounting", lanes: 1, maxBatch: 1 });
      const run = inbox.run(source, async ({ id }, { tx }) => {
        await before();
        await tx.query("insert into applied (id, by) values ($1, $2)", [id, by]);
      });
      t.after(() => run.stop());
      return { source, run };
    };

    const ids = ["m0", "m1", "m2", "m3", "m4"];
    await at.publish(ids.map((id) => ({ id, key: "k" })));
    const old = await member("old", () => (entered(), opened));
    if (old === undefined) return;
    await inHandler;
    // A member that leaves is asked to give back what it has, and has no time: its handler goes on behind it.
    const stopping = old.source.stop().then(() => old.source.close());
    const fresh = (await member("fresh", () => undefined))!;
    const waits = await eventually(
      async () =>
        (
          await pool.query("select from pg_stat_activity where wait_event_type = 'Lock' and query like $1", [
            `%${schema}%log_owner%`,
          ])
        ).rows.length,
      (rows) => rows > 0,
    );
    assert.ok(waits > 0, "the new owner waits for the transaction of the old one");
    assert.equal(fresh.run.stats().deliveries, 0);
    open();
    await stopping;
    await assertCommitted(at, 5);
    const { rows } = await pool.query<{ id: string; by: string }>(
      "select id, by from applied order by position",
    );
    assert.deepEqual(
      rows.map(({ id }) => id),
      ids,
      "in order, each once",
    );
    const by = rows.map((row) => row.by);
    assert.deepEqual(by, ["old", "fresh", "fresh", "fresh", "fresh"], "what the old one had not begun");
  });
}
