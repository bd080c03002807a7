import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { rmSync } from "node:fs";
import test from "node:test";
import { build } from "esbuild";
import { batch } from "../../src/inbox/handler.ts";
import type { ReplayReport } from "../../src/replay/replay-run.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { messageOf, payments, testReplay } from "./support.ts";

const count = 10_000;
const kills = 10;

test("10,000 messages, replayed by processes that are killed ten times: each applied once, the original untouched", async (t) => {
  const { pool, url, schema, inbox, lines, path, column } = await testReplay(t);
  // Long lines: after a death, what is read of the first MiB behind it is handled with care, one by one.
  const all = payments(count).map((payment) => ({ ...payment, text: "x".repeat(8_000) }));
  await pool.query(
    "create table sums (consumer text, account text, sum bigint, primary key (consumer, account))",
  );
  await pool.query(
    "insert into sums select c, 'a' || n, 0 from unnest(array['accounting', 'view']) c, generate_series(0, 6) n",
  );
  await inbox.processBatch(
    all.map(messageOf),
    batch(async (messages, { tx }) => {
      const parts = messages.map((message) => message.json() as { account: string; amount: number });
      await tx.query(
        `update sums s set sum = s.sum + b.amount
           from (select account, sum(amount) as amount from unnest($1::text[], $2::int[]) as u (account, amount)
                  group by account order by account) b
          where s.consumer = 'accounting' and s.account = b.account`,
        [parts.map(({ account }) => account), parts.map(({ amount }) => amount)],
      );
    }),
  );
  const ofOriginal = `select md5(string_agg((m.*)::text, '|' order by digest)) from message m where consumer = 'accounting'`;
  const sums = (consumer: string): string =>
    `select account || ' ' || sum from sums where consumer = '${consumer}' order by account`;
  const [before, sumsBefore] = [await column(ofOriginal), await column(sums("accounting"))];
  lines("all.ndjson", all);
  const plan = JSON.stringify({ url, schema, file: path("all.ndjson") });

  // Compiled once: eleven processes that each compile the sources would take most of the time.
  const program = join(import.meta.dirname, "../../.cache/replay", `${schema}.mjs`);
  onTestEnd(t, () => rmSync(program, { force: true }));
  await build({
    ...{ entryPoints: [join(import.meta.dirname, "replay-process.ts")], outfile: program },
    ...{ bundle: true, platform: "node", format: "esm", packages: "external", logLevel: "silent" },
  });

  /** Runs a process that is killed when it has handled so many messages, or to its end. */
  async function run(killAfter: number): Promise<{ report: ReplayReport | undefined; handled: number }> {
    const child = fork(program, [plan], {
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    let said = "";
    child.stderr?.on("data", (bytes: Buffer) => (said += bytes.toString()));
    let report: ReplayReport | undefined;
    let handled = 0;
    child.on("message", (told: { handled?: number; report?: ReplayReport }) => {
      report ??= told.report;
      handled = told.handled ?? handled;
      if (handled >= killAfter) child.kill("SIGKILL");
    });
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      child.once("close", (...how) => resolve(how)),
    );
    assert.ok(signal === "SIGKILL" || code === 0, said);
    return { report, handled };
  }

  for (let kill = 0; kill < kills; kill++) {
    const { report } = await run(randomInt(1, 60));
    assert.equal(report, undefined, "it was killed before its end");
  }
  const { report } = await run(Number.POSITIVE_INFINITY);
  assert.equal(report?.ended, "done");
  assert.ok(report.resumes !== undefined);
  assert.deepEqual(await column("select count(*)::int from done"), [count]);
  assert.deepEqual(await column("select count(distinct message_id)::int from done"), [count]);
  assert.deepEqual(
    await column("select count(*)::int from message where consumer = 'view' and processed_at is not null"),
    [count],
  );
  assert.deepEqual(await column(sums("view")), sumsBefore, "the same state as the original's");
  assert.deepEqual(await column(ofOriginal), before);
  assert.deepEqual(await column(sums("accounting")), sumsBefore);
  assert.deepEqual(await column("select count(*)::int from replay"), [kills + 1]);
  assert.deepEqual(await column("select count(*)::int from replay where ended is null"), [kills]);
  assert.ok(report.counts.deliveries < count, "what was done before is not read again from the beginning");
});
