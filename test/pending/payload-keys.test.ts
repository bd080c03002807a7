import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import { createInbox, postgres } from "../../src/index.ts";
import { message, recordEffect, testInbox } from "../inbox/support.ts";

test("a stored message whose key is not to be had waits for it: no attempt is used, nothing goes to quarantine, nothing is lost", async (t) => {
  const { pool, schema, effects, quarantined } = await testInbox(t);
  const key = createHash("sha256").update("a key").digest();
  let there = false;
  const store = postgres(pool, {
    schema,
    payloadKeys: { current: () => ({ id: "k1", key }), byId: () => (there ? key : undefined) },
  });
  const inbox = createInbox({ store, consumer: "accounting", retry: { maxAttempts: 1 } });
  const { outcome } = await inbox.accept(message("m1"));
  assert.equal(outcome, "stored");
  const until = async (what: string): Promise<void> => {
    while ((await pool.query(`select from pending where ${what}`)).rowCount === 0) await turn();
  };
  const work = inbox.work(recordEffect);
  await until("deferrals = 1 and attempts = 0 and state = 'scheduled' and last_code = 'payload-key-missing'");
  await pool.query("update pending set due_at = clock_timestamp()");
  await until("deferrals = 2 and attempts = 0");
  assert.deepEqual([await effects(), await quarantined()], [{}, []]);
  assert.equal((await pool.query("select from attempt")).rowCount, 0);
  there = true;
  await pool.query("update pending set due_at = clock_timestamp()");
  while ((await effects())["m1"] === undefined) await turn();
  await work.stop();
  assert.deepEqual(await effects(), { m1: 1 });
  assert.equal((await pool.query("select from pending")).rowCount, 0);
});
