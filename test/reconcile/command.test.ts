import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runInbox } from "../cli/run-inbox.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { testDatabase } from "../support/postgres.ts";
import { hoursAgo, ledgerCase } from "./ledger-case.ts";

test("inbox reconcile tells what is missing and extra, for people and as JSON, and ends with 3", async (t) => {
  const { url, schema, fill } = await ledgerCase(t);
  await fill([{ id: "a" }, { id: "unsent\u001b[2J" }]);
  const directory = await mkdtemp(join(tmpdir(), "inbox-list-"));
  onTestEnd(t, () => rm(directory, { recursive: true }));
  const file = join(directory, "sent.txt");
  await writeFile(file, "a\nlost\n");
  const args = [
    "reconcile",
    "--consumer",
    "accounting",
    "--producer",
    "payments",
    "--schema",
    schema,
    "--file",
    file,
  ];
  const env = { DATABASE_URL: url };
  const table = await runInbox(args, { env });
  assert.equal(table.code, 3, table.stderr);
  assert.match(table.stdout, /missing.*lost/);
  assert.match(table.stdout, /2 sent, 1 of them applied; 1 missing, 1 extra/);
  assert.ok(!table.stdout.includes("\u001b[2J"), "an id moves no cursor");

  const { code, stdout } = await runInbox([...args, "--json", "--since", hoursAgo(3).toISOString()], { env });
  assert.equal(code, 3);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    lines.map(({ kind, id }) => [kind, id]),
    [
      ["missing", "lost"],
      ["extra", "unsent\u001b[2J"],
      ["report", undefined],
    ],
  );
  assert.equal(lines[2]!["applied"], 1);
  const { stdout: none, stderr } = await runInbox([...args, "--limit", "0"], { env });
  assert.doesNotMatch(none, /lost/);
  assert.match(stderr, /2 more differences/);
});

test("inbox reconcile reads stdin, keeps no copy of it, and ends with 0 where nothing differs", async (t) => {
  const { url, schema, fill } = await ledgerCase(t);
  await fill([{ id: "a", payload: '{"a":1}', mode: "j" }]);
  const directory = await mkdtemp(join(tmpdir(), "inbox-spool-"));
  onTestEnd(t, () => rm(directory, { recursive: true }));
  const { code, stdout, stderr } = await runInbox(
    [
      "reconcile",
      "--consumer",
      "accounting",
      "--schema",
      schema,
      "--file",
      "-",
      "--format",
      "ndjson",
      "--fingerprint",
      "json",
    ],
    {
      env: { DATABASE_URL: url, TMPDIR: directory },
      input: '{"id":"a","producer":"payments","payload":"{ \\"a\\": 1.0 }"}\n',
    },
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /by id and payload\n1 sent, 1 of them applied; nothing differs/);
  assert.deepEqual(
    (await readdir(directory)).filter((name) => name.startsWith("inbox-sent-")),
    [],
  );
});

test("inbox reconcile asks another database by a query, or another inbox, named by a variable and never shown", async (t) => {
  const { url, schema, fill } = await ledgerCase(t);
  const producer = await testDatabase(t);
  await fill([{ id: "7" }]);
  await fill([{ id: "7" }, { id: "8" }], "other");
  await producer.pool.query("create table outbox (id bigint, sent_at timestamptz)");
  await producer.pool.query(
    "insert into outbox select id, now() - interval '1 hour' from generate_series(7, 8) id",
  );
  const shop = new URL(producer.url);
  shop.searchParams.set("options", `-c search_path=${producer.schema}`);
  const env = { DATABASE_URL: url, SHOP_URL: shop.href };
  const base = ["reconcile", "--consumer", "accounting", "--producer", "payments", "--schema", schema];
  const query = "select id, sent_at as time from outbox where sent_at >= $1 and sent_at < $2";
  const asked = await runInbox(
    [...base, "--query", query, "--sent-database", "SHOP_URL", "--since", "2020-01-01"],
    { env },
  );
  assert.equal(asked.code, 3, asked.stderr);
  assert.match(asked.stdout, /2 sent, 1 of them applied; 1 missing/);
  const other = await runInbox([...base, "--other-consumer", "other", "--other-schema", schema], { env });
  assert.match(
    other.stdout,
    /accounting against inbox of other.*by id and payload\n2 sent, 1 of them applied; 1 missing/,
  );

  const broken = await runInbox([...base, "--query", "select 1 as no", "--sent-database", "SHOP_URL"], {
    env,
  });
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /row 1: The message has no id/);
  const password = new URL(url).password;
  if (password !== "")
    for (const { stdout, stderr } of [asked, other, broken]) assert.ok(!(stdout + stderr).includes(password));
});

for (const [what, args] of [
  ["without a list", []],
  ["with two lists", ["--file", "a", "--query", "select 1"]],
  ["with a file of a database", ["--file", "a", "--sent-database", "SHOP_URL"]],
  [
    "with a URL in place of a variable",
    ["--query", "select 1", "--sent-database", "postgres://u:secret@h/d"],
  ],
  ["with a variable that is not set", ["--query", "select 1", "--sent-database", "NO_SUCH"]],
  ["with a time without zone", ["--file", "a", "--since", "2026-11-30T07:00:00"]],
  ["with a margin without unit", ["--file", "a", "--margin", "5"]],
] as const) {
  test(`wrong usage ends with 2: inbox reconcile ${what}`, async (t) => {
    const { url } = await testDatabase(t);
    const { code, stderr } = await runInbox(["reconcile", "--consumer", "c", ...args], {
      env: { DATABASE_URL: url },
    });
    assert.equal(code, 2, stderr);
    assert.ok(!stderr.includes("secret"));
  });
}
