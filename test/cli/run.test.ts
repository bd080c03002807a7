import assert from "node:assert/strict";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { livingPostmaster } from "../../src/local-postgres/postmaster.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { testDatabase } from "../support/postgres.ts";
import { handlerPath, linesOf, payments, runCase, summaryIn } from "./run-case.ts";
import { runInbox } from "./run-inbox.ts";

test("a file with redeliveries is applied once, and the next run goes on where it grew", async (t) => {
  const { file, run, total } = await runCase(t);
  const all = payments(500);
  const path = file("orders.ndjson", [...all, ...all.slice(0, 100)]);
  const first = await run("credit", "--source", path);
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stderr, /Migrated schema "test_[0-9a-f]+"/);
  const { deliveries, applied, duplicates, unsettled, stopped, consumer } = first.summary;
  assert.deepEqual(
    { deliveries, applied, duplicates, unsettled, stopped, consumer },
    { deliveries: 600, applied: 500, duplicates: 100, unsettled: 0, stopped: false, consumer: "accounting" },
  );
  assert.equal(await total(), 500);

  const again = await run("credit", "--source", path);
  assert.deepEqual([again.code, again.summary.deliveries], [0, 0]);
  assert.match(again.stderr, /Going on in/);

  appendFileSync(path, linesOf(payments(3, 500)));
  const grown = await run("credit", "--source", path);
  assert.deepEqual([grown.summary.deliveries, grown.summary.applied], [3, 3]);

  const whole = await run("credit", "--source", path, "--no-resume");
  assert.deepEqual([whole.code, whole.summary.applied, whole.summary.duplicates], [0, 0, 603]);
  assert.equal(await total(), 503);
});

test("stdout holds the summary line and nothing else; without --json it holds nothing", async (t) => {
  const { file, run, env, cwd, pool } = await runCase(t);
  const path = file("orders.ndjson", payments(3));
  const { stdout } = await run("credit", "--source", path);
  assert.equal(stdout.trim().split("\n").length, 1);
  const { rows } = await pool.query<{ schema: string }>("select current_schema() as schema");
  const args = [
    "run",
    handlerPath("credit"),
    "--source",
    path,
    "--id-path",
    "id",
    "--producer",
    "shop",
    "--schema",
    rows[0]!.schema,
  ];
  const silent = await runInbox([...args, "--no-resume"], { cwd, env });
  assert.deepEqual([silent.code, silent.stdout], [0, ""]);
  assert.match(silent.stderr, /3 deliveries, 0 applied, 3 duplicates/);
});

test("what goes to quarantine ends with 3, and its neighbours are applied", async (t) => {
  const { file, run, total, env, cwd, pool } = await runCase(t);
  const path = file("orders.ndjson", [
    ...payments(20),
    { id: "p-1", account: "a-1", amount: 999 },
    { id: "bad", account: "a", amount: 1, kind: "never" },
    { id: "failing", account: "b", amount: 1, kind: "always-fails" },
    ...payments(20, 20),
  ]);
  appendFileSync(path, "{ no json\n");
  const { code, summary, stderr } = await run("credit", "--source", path);
  assert.equal(code, 3, stderr);
  assert.deepEqual([summary.applied, summary.conflicts, summary.rejected], [40, 1, 3]);
  assert.match(stderr, /4 went to quarantine/);
  assert.equal(await total(), 40);

  const { rows } = await pool.query<{ schema: string }>("select current_schema() as schema");
  const list = await runInbox(["quarantine", "list", "--json", "--schema", rows[0]!.schema], { cwd, env });
  const codes = list.stdout
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { code: string }).code);
  assert.deepEqual(codes.sort(), ["attempts-exhausted", "handler-rejected", "malformed", "payload-conflict"]);
});

test("what waits behind a message in quarantine is told, ends with 3, and is applied after the decision", async (t) => {
  const { file, run, total, env, cwd, pool } = await runCase(t);
  const path = file("orders.ndjson", [
    { id: "bad", account: "a", amount: 1, kind: "never" },
    { id: "next", account: "a", amount: 2 },
    { id: "other", account: "b", amount: 4 },
  ]);
  const { code, summary, stderr } = await run("credit", "--source", path);
  assert.equal(code, 3, stderr);
  assert.deepEqual([summary.applied, summary.rejected, summary.waiting], [1, 1, 1]);
  assert.match(stderr, /1 waiting/);
  assert.match(stderr, /1 wait for .*inbox pending list/);
  assert.equal(await total(), 4);

  const { rows } = await pool.query<{ schema: string; id: string }>(
    "select current_schema() as schema, (select id from quarantine)::text as id",
  );
  const [{ schema, id } = { schema: "", id: "" }] = rows;
  const args = ["quarantine", "discard", id, "--why", "a test of the shop", "--schema", schema];
  const discarded = await runInbox(args, { cwd, env });
  assert.equal(discarded.code, 0, discarded.stderr);
  const again = await run("credit", "--source", path);
  assert.equal(again.code, 0, again.stderr);
  assert.equal(again.summary.applied, 1);
  assert.equal(await total(), 6);
});

test("stdin is a source like any other", async (t) => {
  const { env, cwd, total, pool } = await runCase(t);
  const { rows } = await pool.query<{ schema: string }>("select current_schema() as schema");
  const event = (id: number): string =>
    `${JSON.stringify({ specversion: "1.0", type: "paid", source: "/shop", id: `e-${id}`, subject: "a", data: { account: "a", amount: 2 } })}\n`;
  const { code, stdout, stderr } = await runInbox(
    ["run", handlerPath("credit"), "--source", "-", "--json", "--schema", rows[0]!.schema],
    { cwd, env, input: `\ufeff${event(1)}\r\n${event(2)}${event(1)}${event(3).trimEnd()}` },
  );
  assert.equal(code, 0, stderr);
  assert.deepEqual([summaryIn(stdout).applied, summaryIn(stdout).duplicates], [3, 1]);
  assert.equal(await total(), 6);
});

test("flags win over the module's options", async (t) => {
  const { file, run, pool } = await runCase(t);
  const path = file("orders.ndjson", payments(2));
  const { summary } = await run(
    "credit",
    "--source",
    path,
    "--consumer",
    "reporting",
    "--handler-version",
    "9",
    "--lanes",
    "1",
    "--max-batch",
    "1",
  );
  assert.equal(summary.consumer, "reporting");
  const { rows } = await pool.query("select distinct consumer, handler_version from message");
  assert.deepEqual(rows, [{ consumer: "reporting", handler_version: "9" }]);
});

test("without DATABASE_URL it starts a PostgreSQL of its own, says so, and stops it; other commands then find it", async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), "inbox-run-local-"));
  // Root runs PostgreSQL as another user, who must be able to get here.
  chmodSync(cwd, 0o755);
  onTestEnd(t, () => rmSync(cwd, { recursive: true, force: true }));
  writeFileSync(
    join(cwd, "orders.ndjson"),
    linesOf([...payments(10), { id: "bad", account: "a", amount: 1, kind: "never" }]),
  );
  const args = [
    "run",
    handlerPath("credit"),
    "--source",
    "orders.ndjson",
    "--id-path",
    "id",
    "--producer",
    "shop",
    "--json",
  ];
  const first = await runInbox(args, { cwd });
  assert.equal(first.code, 3, first.stderr);
  assert.match(first.stderr, /using the PostgreSQL that npm ships, in \.inbox\/postgres/);
  assert.deepEqual([summaryIn(first.stdout).applied, summaryIn(first.stdout).rejected], [10, 1]);
  assert.equal(existsSync(join(cwd, ".inbox/postgres/postgres.log")), true);
  assert.equal(livingPostmaster(join(cwd, ".inbox/postgres/data")), undefined);
  assert.equal(readFileSync(join(cwd, ".inbox/.gitignore"), "utf8"), "*\n");
  const password = readFileSync(join(cwd, ".inbox/postgres/password"), "utf8");
  assert.doesNotMatch(first.stdout + first.stderr, new RegExp(password));

  const list = await runInbox(["quarantine", "list", "--json"], { cwd });
  assert.equal((JSON.parse(list.stdout) as { messageId: string }).messageId, "bad");
});

test("wrong usage ends with 2 before any database is asked", async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), "inbox-run-usage-"));
  onTestEnd(t, () => rmSync(cwd, { recursive: true, force: true }));
  const credit = handlerPath("credit");
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [[credit], /--source/],
    [["missing.ts", "--source", "-"], /There is no file missing\.ts/],
    [[handlerPath("none"), "--source", "-"], /exports no handler/],
    [[credit, "--source", "-", "--id-path", "id"], /--producer/],
    [[credit, "--source", "-", "--key-path", "id"], /--id-path/],
    [[credit, "--source", "-", "--lanes", "0"], /whole number/],
  ];
  for (const [args, message] of table) {
    const { code, stdout, stderr } = await runInbox(["run", ...args], { cwd });
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr, message);
  }
  assert.equal(existsSync(join(cwd, ".inbox")), false);
});

test("a handler's module that throws, a missing file and an unreachable database fail with a clear word", async (t) => {
  const { run, cwd } = await runCase(t);
  const broken = await run("broken", "--source", "-");
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /the module itself is broken/);

  const missing = await run("credit", "--source", join(cwd, "no.ndjson"));
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /no\.ndjson cannot be read: there is no such file/);

  const nameless = await run("nameless", "--source", "-");
  assert.equal(nameless.code, 2);
  assert.match(nameless.stderr, /--consumer/);

  const env = { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" };
  const away = await runInbox(["run", handlerPath("credit"), "--source", "-"], { cwd, env });
  assert.equal(away.code, 1);
  assert.match(away.stderr, /ECONNREFUSED/);
});

test("a schema that is not migrated is refused with --no-migrate", async (t) => {
  const { url } = await testDatabase(t);
  const { code, stderr } = await runInbox(
    [
      "run",
      handlerPath("nameless"),
      "--source",
      "-",
      "--consumer",
      "c",
      "--no-migrate",
      "--schema",
      "not_there",
    ],
    { env: { DATABASE_URL: url } },
  );
  assert.equal(code, 1);
  assert.match(stderr, /Run: inbox migrate/);
});
