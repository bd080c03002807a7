import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { runHere } from "../cli/in-process.ts";
import { hoursAgo } from "../reconcile/ledger-case.ts";
import { cleanupCase, hour } from "./cleanup-case.ts";

test("a rotation forgets the generation before when its window is over and every source made progress", async (t) => {
  const { pool, url, schema, fill, cleanup } = await cleanupCase(t);
  const worker = await cleanup();
  const ledger = async (): Promise<number> =>
    (await pool.query<{ n: number }>("select count(*)::int as n from ledger")).rows[0]!.n;
  await fill(Array.from({ length: 20_000 }, () => ({ id: randomUUID(), at: hoursAgo(40) })));
  await assert.rejects(worker.rotate(), { code: "window-too-short" });
  await worker.once();
  await pool.query("truncate ledger_stretch");
  await fill(Array.from({ length: 20_000 }, () => ({ id: randomUUID(), at: hoursAgo(40) })));
  await fill([{ id: "other", at: hoursAgo(1) }], "shipping");
  await assert.rejects(worker.rotate(), /"shipping" keeps identities for ever/);
  await pool.query("delete from message where consumer = 'shipping'");
  // Beside identities: answers, and attempts of what was applied in the end.
  await pool.query(
    `insert into answer (digest, consumer, request, status, headers, body, answered_at)
     select digest, consumer, '', 200, '{}', '', processed_at from message limit 300`,
  );
  const attempt = `insert into attempt (digest, consumer, tenant, producer, message_id, code, error, handler_version, failed_at)
     select digest, consumer, tenant, producer, message_id, 'handler-failed', '', '', processed_at from message`;
  await pool.query(`${attempt} limit 300`);

  assert.equal((await worker.rotate()).ended, "rotated");
  assert.equal(await ledger(), 20_000, "the first one forgets nothing");
  await fill([{ id: "young", at: hoursAgo(1) }]);
  await pool.query(attempt);
  const beside = async (): Promise<unknown> =>
    (
      await pool.query(
        "select (select count(*) from answer)::int as answers, (select count(*) from attempt)::int as attempts",
      )
    ).rows[0];
  assert.deepEqual(await beside(), { answers: 300, attempts: 301 });
  assert.equal((await worker.rotate()).ended, "too young");
  // More than a window later.
  await pool.query("update retention_guard set closed_at = closed_at - interval '25 hours'");
  await pool.query("update source_clock set advanced_at = now() - interval '1 hour'");
  const waits = await worker.rotate();
  assert.deepEqual([waits.ended, waits.waitsFor], ["waits", ["orders"]]);
  await pool.query("update source_clock set advanced_at = now(), caught_up_at = now() - interval '2 hours'");
  assert.equal((await worker.rotate()).ended, "too young", "a source is two hours behind");
  await pool.query("update source_clock set caught_up_at = now()");
  const command = await runHere(["retention", "rotate", "--json", "--schema", schema], {
    env: { DATABASE_URL: url },
  });
  assert.equal(command.code, 0, command.stderr);
  const { ended, durationMs, windowMs } = JSON.parse(command.stdout) as Record<string, unknown>;
  assert.deepEqual(
    [ended, windowMs, (durationMs as number) < 1_000],
    ["rotated", 24 * hour, true],
    `${String(durationMs)}`,
  );
  assert.equal(await ledger(), 1);
  assert.deepEqual(await beside(), { answers: 0, attempts: 1 });
});
