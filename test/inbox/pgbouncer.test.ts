import assert from "node:assert/strict";
import { test } from "node:test";
import postgresJs from "postgres";
import { createInbox, postgres, type MessageHandler } from "../../src/index.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { pgbouncerPath, startPgbouncer } from "../support/pgbouncer.ts";
import { testPool } from "../support/postgres.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";
import { message, testInbox } from "./support.ts";

const reason = "pgbouncer is not installed (Debian: apt-get install pgbouncer)";

test("applies a batch once through a pooler that gives every transaction another connection (DRV-07)", async (t) => {
  if (!requireOrSkip(t, pgbouncerPath() !== undefined, reason)) return;
  const { url, schema, effects } = await testInbox(t);
  const pooled = await startPgbouncer(t, url);
  const unprepared = postgresJs(pooled, { max: 4, prepare: false, onnotice: () => undefined });
  // Without a time it may wait for ever here (postgres 3.4.9): docs/drivers.md.
  onTestEnd(t, () => unprepared.end({ timeout: 1 }));
  const pools = [
    await testPool(t, { url: pooled }),
    await testPool(t, { url: pooled, pipeline: false }),
    unprepared,
  ];
  // A pooler keeps no search_path, so the handler names its schema.
  const handler: MessageHandler = ({ id }, { tx }) =>
    tx.query(`insert into ${schema}.effect (message_id) values ($1)`, [id]).then(() => undefined);
  const messages = Array.from({ length: 200 }, (_, i) => message(`m${i}`, { key: `k${i % 11}` }));
  const results = await Promise.all(
    pools.map((pool) =>
      createInbox({
        store: postgres(pool, { schema }),
        consumer: "pooled",
        lanes: 3,
        claimLockTimeoutMs: 2_000,
      }).processBatch(messages, handler),
    ),
  );
  for (const processed of results) {
    for (const { outcome } of processed)
      assert.ok(["applied", "duplicate", "busy"].includes(outcome), outcome);
  }
  assert.equal(Object.keys(await effects()).length, 200);
  assert.deepEqual(new Set(Object.values(await effects())), new Set([1]));
});
