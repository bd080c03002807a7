import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { test, type TestContext } from "node:test";
import { postgres } from "../../src/index.ts";
import { hoursAgo } from "../reconcile/ledger-case.ts";
import { cleanupCase, hour } from "./cleanup-case.ts";

const script = join(import.meta.dirname, "cleanup-process.ts");
const tsx = fileURLToPath(import.meta.resolve("tsx"));

interface Cleaner {
  readonly child: ChildProcess;
  readonly lines: string[];
  readonly started: Promise<void>;
}

function cleaner(t: TestContext, url: string, schema: string): Cleaner {
  const child = spawn(process.execPath, ["--import", tsx, script, schema], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const lines: string[] = [];
  const started = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line === "started") resolve();
      else lines.push(line);
    });
  });
  return { child, lines, started };
}

test("four processes: one works, the one is killed or stands still, another one takes over, all that is old goes once", async (t) => {
  const { pool, url, schema, fill, count } = await cleanupCase(t);
  await fill(Array.from({ length: 12_000 }, () => ({ id: randomUUID(), at: hoursAgo(48) })));
  await postgres(pool, { schema }).cleanup.declareWindow("accounting", 24 * hour);
  const cleaners = Array.from({ length: 4 }, () => cleaner(t, url, schema));
  await Promise.all(cleaners.map(({ started }) => started));

  /** Whose turn it is, when it has forgotten something more. */
  const working = async (than: number): Promise<Cleaner> => {
    for (;;) {
      const left = await count();
      assert.ok(left > 0, "it went too fast to kill anybody");
      const { rows } = await pool.query<{ pid: string }>(
        "select split_part(application_name, ' ', 2) as pid from pg_stat_activity where application_name like 'cleanup %' and backend_xid is not null and strpos(query, $1) > 0",
        [schema],
      );
      const found = cleaners.find(({ child }) => String(child.pid) === rows[0]?.pid);
      if (found !== undefined && left < than && found.child.exitCode === null) return found;
    }
  };
  const first = await working(12_000);
  first.child.kill("SIGKILL");
  await once(first.child, "exit");
  const left = await count();
  const second = await working(left);
  assert.notEqual(second.child.pid, first.child.pid);
  second.child.kill("SIGSTOP");
  t.after(() => second.child.kill("SIGCONT"));
  while ((await count()) > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  second.child.kill("SIGCONT");
  for (const { child } of cleaners)
    assert.ok(child === first.child || child.exitCode === null, "none died of it");
  const { rows } = await pool.query<{ taken: number }>("select lease_token::int as taken from cleanup");
  assert.ok(rows[0]!.taken >= 2, "the lease was taken more than once");
});
