import assert from "node:assert/strict";
import test from "node:test";
import postgresJs from "postgres";
import { onTestEnd } from "../support/cleanup.ts";
import { pgbouncerPath, startPgbouncer } from "../support/pgbouncer.ts";
import { testPool } from "../support/postgres.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";
import { openLogs, taken, upTo } from "./log-support.ts";

type Logs = Awaited<ReturnType<typeof openLogs>>;

/** A record that is put off, one that never goes, redeliveries, and an owner that is replaced in its handler. */
async function followLogs({ member, applied, count, cursor }: Logs, pool: unknown): Promise<void> {
  let failures = 0;
  let entered = (): void => undefined;
  let open = (): void => undefined;
  const inHandler = new Promise<void>((resolve) => (entered = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  const old = member(
    "old",
    async (offset) => {
      if (offset === 30 && failures++ < 2) throw new Error("in company and alone, then not again");
      if (offset === 40) throw new Error("never");
      if (offset !== 60) return;
      entered();
      await opened;
    },
    {},
    pool,
  );
  const log = await taken(old.take("log"));
  await old.deliver(log, upTo(60));
  assert.equal(await cursor(), 59);
  await old.deliver(log, upTo(60), { previous: -1, redelivered: true });
  const last = old.deliver({ ...log, applied: 59n }, [60]);
  await inHandler;
  const fresh = member("fresh", undefined, {}, pool);
  const taking = taken(fresh.take("log"));
  open();
  const again = await taking;
  assert.equal(again.applied, 60n, "what was under way has committed by now");
  assert.deepEqual(await last, [{ kind: "ack" }]);
  await fresh.deliver(again, upTo(70), { previous: -1, redelivered: true });
  const late = await old.deliver({ ...log, applied: 69n }, [70]);
  assert.equal(late[0]?.kind, "retry", "nothing of the old one any more");
  assert.equal(await cursor(), 69);
  while ((await count("pending")) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  const list = await applied();
  // With the fresh owner's handler, which minds nothing, record 40 may be applied from pending.
  const kept = await count("quarantine");
  const all = upTo(70).filter((offset) => offset !== 40 || kept === 0);
  assert.deepEqual(
    list.sort((x, y) => x - y),
    all,
    "each once",
  );
}

test(
  "a log is followed with postgres.js: each record once, and nothing of an owner that was replaced",
  { timeout: 60_000 },
  async (t) => {
    const logs = await openLogs(t);
    const sql = postgresJs(logs.url, { max: 8, onnotice: () => undefined });
    onTestEnd(t, () => sql.end({ timeout: 1 }));
    await followLogs(logs, sql);
  },
);

test(
  "a log is followed through a pooler that gives every transaction another connection: each record once",
  { timeout: 60_000 },
  async (t) => {
    const reason = "pgbouncer is not installed (Debian: apt-get install pgbouncer)";
    if (!requireOrSkip(t, pgbouncerPath() !== undefined, reason)) return;
    const logs = await openLogs(t);
    const pooled = await startPgbouncer(t, logs.url);
    await followLogs(logs, await testPool(t, { url: pooled }));
  },
);
