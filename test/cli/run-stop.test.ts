import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import test from "node:test";
import { until } from "../support/in-time.ts";
import { ownServer } from "../support/postgres.ts";
import { payments, runCase, summaryIn, type RunCase } from "./run-case.ts";
import { finished } from "./run-inbox.ts";

/** Resolves when the database shows that so many payments were applied. */
async function applied(run: RunCase, least: number, child: ChildProcess): Promise<void> {
  await until(`${least} payments are applied`, async () => {
    const { rows } = await run.pool.query<{ there: boolean }>(
      "select to_regclass('account') is not null as there",
    );
    const total = rows[0]!.there ? await run.total() : 0;
    if (total < least) assert.equal(child.exitCode, null, "the command ended too soon");
    return { holds: total >= least, answer: `${total} are` };
  });
}

/** Resolves when the command has written these words to stderr. */
function said(child: ChildProcess, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stderr!.on("data", (chunk: Buffer) => {
      if (chunk.includes(words)) resolve();
    });
    child.once("close", () => reject(new Error(`It ended without saying: ${words}`)));
  });
}

test("SIGINT once finishes what is in hand, and the next run does the rest", async (t) => {
  const run = await runCase(t);
  const path = run.file("orders.ndjson", payments(1_500));
  const child = run.spawn("slow", "--source", path);
  const result = finished(child);
  await applied(run, 50, child);
  child.kill("SIGINT");
  const { code, stdout, stderr } = await result;
  const summary = summaryIn(stdout);
  assert.equal(code, 0, stderr);
  assert.equal(summary.stopped, true);
  assert.ok(summary.applied >= 50 && summary.applied < 1_500, `${summary.applied} applied`);
  assert.equal(await run.total(), summary.applied);
  assert.match(stderr, /Once more stops at once/);

  const rest = await run.run("credit", "--source", path);
  assert.equal(rest.code, 0, rest.stderr);
  assert.equal(summary.applied + rest.summary.applied, 1_500);
  assert.equal(await run.total(), 1_500);
});

test("SIGINT twice stops at once with 130, and nothing is lost or doubled", async (t) => {
  const run = await runCase(t);
  const list = payments(100);
  const path = run.file("orders.ndjson", [
    ...list.slice(0, 50),
    { id: "h", account: "h", amount: 1, kind: "hangs" },
    ...list.slice(50),
  ]);
  const child = run.spawn("slow", "--source", path);
  const result = finished(child);
  await said(child, "HANGING");
  const stopping = said(child, "Once more");
  child.kill("SIGINT");
  await stopping;
  child.kill("SIGINT");
  assert.equal((await result).code, 130);

  const rest = await run.run("credit", "--source", path);
  assert.equal(rest.code, 0, rest.stderr);
  assert.equal(await run.total(), 101);
});

test("killed again and again at random, it applies every payment once", async (t) => {
  const run = await runCase(t);
  const count = 2_000;
  const list = payments(count);
  const path = run.file("orders.ndjson", [...list, ...list.slice(0, 200)]);
  for (let kill = 1; kill <= 3; kill += 1) {
    const child = run.spawn("slow", "--source", path);
    child.stdout!.resume();
    child.stderr!.resume();
    await applied(run, kill * 100, child);
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  const rest = await run.run("credit", "--source", path);
  assert.equal(rest.code, 0, rest.stderr);
  assert.equal(rest.summary.unsettled, 0);
  assert.equal(await run.total(), count);
});

test("what was read from stdin and not applied before a stop is told, and fails", async (t) => {
  const run = await runCase(t);
  const child = run.spawn("slow", "--source", "-");
  const result = finished(child);
  child.stdin!.on("error", () => undefined);
  for (const payment of payments(1_500)) child.stdin!.write(`${JSON.stringify(payment)}\n`);
  await applied(run, 50, child);
  child.kill("SIGTERM");
  const { code, stdout, stderr } = await result;
  const summary = summaryIn(stdout);
  assert.equal(code, 1, stderr);
  assert.ok(summary.unsettled > 0);
  assert.match(stderr, new RegExp(`${summary.unsettled} messages were read from stdin and not applied`));
  assert.equal(await run.total(), summary.applied);
});

test("the database is killed under it: it waits, says so, goes on, and applies everything once", async (t) => {
  const server = await ownServer(t);
  const run = await runCase(t, server.url);
  const path = run.file("orders.ndjson", payments(600));
  const child = run.spawn("slow", "--source", path);
  const result = finished(child);
  await applied(run, 50, child);
  const away = said(child, "does not answer");
  await server.kill();
  await away;
  await server.restart();
  const { code, stdout, stderr } = await result;
  assert.equal(code, 0, stderr);
  assert.match(stderr, /The database is back/);
  assert.equal(summaryIn(stdout).rejected, 0);
  assert.equal(await run.total(), 600);
});
