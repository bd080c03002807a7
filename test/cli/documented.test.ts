import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { testDatabase } from "../support/postgres.ts";
import { examplesOf, runExample } from "../support/run-example.ts";
import { put } from "../quarantine/support.ts";
import { runHere } from "./in-process.ts";
import type { RunResult } from "./run-inbox.ts";

const root = resolve(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/quarantine.md"), "utf8");

const commands = [...page.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, text = ""]) =>
  text.split("\n").filter((line) => line !== ""),
);

const payments = [
  { id: "p-1", account: "a", amount: 5 },
  { id: "p-2", account: "17", amount: 1 },
  { id: "p-3", account: "18", amount: 2 },
  { id: "p-4", account: "17", amount: 3 },
  { id: "p-5", account: "b", amount: "x12" },
  { id: "p-6", account: "test", amount: 9 },
  { id: "p-7", account: "a", amount: 1 },
];

/** Another payment under the id of the first one, which is there for the second run. */
const conflict = { id: "p-1", account: "a", amount: 8 };

const linesOf = (list: readonly object[]): string => list.map((one) => `${JSON.stringify(one)}\n`).join("");

/** What ends otherwise than with 0, and how. */
const exits: readonly (readonly [RegExp, number])[] = [
  [/^inbox run /, 3],
  [/dry-run 4 handler\.ts$/, 3],
];

test("every command of docs/quarantine.md does what the page says", { timeout: 180_000 }, async (t) => {
  const { url, schema, pool } = await testDatabase(t);
  const directory = mkdtempSync(join(tmpdir(), "inbox-docs-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  const [handler = "", config = ""] = examplesOf("docs/quarantine.md");
  const source = JSON.stringify(join(root, "src/index.ts"));
  writeFileSync(join(directory, "handler.ts"), handler.replaceAll('"transactional-inbox"', source));
  writeFileSync(join(directory, "config.ts"), config);
  const file = join(directory, "payments.ndjson");
  writeFileSync(file, linesOf(payments));
  // The handler's tables are found by the search path.
  const databaseUrl = new URL(url);
  databaseUrl.searchParams.set("options", `-c search_path=${schema}`);
  const env = { DATABASE_URL: databaseUrl.href };
  const back = process.cwd();
  process.chdir(directory);
  onTestEnd(t, () => process.chdir(back));
  /** A line of the page as a shell would run it: words, quotes, and output that goes to a file. */
  async function run(line: string): Promise<RunResult> {
    const [, command = "", target] = /^(.*?)(?: > (\S+))?$/.exec(line) ?? [];
    const [name, ...args] = [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
      ([, double, single, word]) => double ?? single ?? word ?? "",
    );
    if (name !== "inbox") {
      const { stdout } = await promisify(execFile)("/bin/sh", ["-c", line], { cwd: directory });
      return { code: 0, stdout, stderr: "" };
    }
    const result = await runHere([...args, "--schema", schema], { env });
    if (target !== undefined) writeFileSync(target, result.stdout);
    return result;
  }
  await pool.query("create table account (id text primary key, balance bigint not null default 0)");
  await pool.query("insert into account (id) values ('a'), ('b')");

  const outputs = new Map<string, string>();
  for (const line of commands) {
    if (line.includes("retry 1")) await pool.query("insert into account (id) values ('17'), ('18')");
    if (line.startsWith("inbox run") && outputs.has(line)) appendFileSync(file, linesOf([conflict]));
    const { code, stdout, stderr } = await run(line);
    const expected = exits.find(([pattern]) => pattern.test(line))?.[1] ?? 0;
    assert.equal(code, expected, `${line}\n${stdout}${stderr}`);
    // A second run of the same command says something else.
    if (!outputs.has(line)) outputs.set(line, stdout + stderr);
  }
  const output = (start: string): string =>
    [...outputs].find(([line]) => line.startsWith(start))?.[1] ?? assert.fail(`no command ${start}`);
  assert.match(output("inbox quarantine groups"), /no account <n>/);
  assert.match(output("inbox quarantine list --group"), /p-3[\s\S]*p-2/);
  assert.match(output("inbox quarantine show 1"), /message id +p-2/);
  assert.match(output("inbox quarantine dry-run 4"), /invalid input syntax for type bigint/);
  assert.match(
    output("inbox quarantine retry --group 6dc00bd8af96f280 --expected"),
    /retry of 1 entry, by ann/,
  );
  assert.match(output("inbox quarantine repair 4 --payload fixed.json --dry-run"), /-.*x12[\s\S]*\+.*12/);
  assert.match(output("inbox pending show p-1b"), /state +ready/);
  assert.match(output("inbox explain p-2"), /applied: its effect is committed/);
  assert.match(output("inbox explain p-1b"), /waits for +a worker/);
  assert.match(output("inbox quarantine purge --decided-before 90d --dry-run"), /0 entries would be removed/);
  const { rows } = await pool.query<{ id: string; balance: number }>(
    "select id, balance::int as balance from account order by id",
  );
  assert.deepEqual(
    rows.map(({ id, balance }) => `${id} ${balance}`),
    ["17 4", "18 2", "a 6", "b 12"],
  );
});

test("the functions of docs/quarantine.md do what the page says", { timeout: 60_000 }, async (t) => {
  const database = await testDatabase(t);
  await migrate(database.pool, { schema: database.schema });
  const store = postgres(database.pool, { schema: database.schema });
  for (const id of ["p-2", "p-3"]) await put(store, id, { payload: '{"card":{"number":"4111"}}' });
  const [, , example = ""] = examplesOf("docs/quarantine.md");
  const stdout = await runExample(t, database, "quarantine", example, {});
  assert.match(stdout, /2 no account/);
  assert.doesNotMatch(stdout, /4111/);
  assert.match(stdout, /^2$/m);
  assert.match(stdout, /state: 'pending'/);
});

test("docs/quarantine.md names every command, and every command has its help", async () => {
  for (const [noun, verbs] of [
    [
      "quarantine",
      [
        ...["groups", "list", "show", "dry-run", "retry", "apply", "repair", "discard", "resume"],
        ...["decisions", "export", "import", "purge"],
      ],
    ],
    ["pending", ["list", "show", "retry"]],
  ] as const) {
    const { stdout } = await runHere([noun, "--help"], { env: {} });
    const known = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name]) => name);
    assert.deepEqual(
      known.filter((name) => name !== "help"),
      verbs,
    );
    for (const verb of verbs) {
      assert.ok(
        commands.some((line) => line.startsWith(`inbox ${noun} ${verb}`)),
        `${noun} ${verb}`,
      );
      const help = await runHere([noun, verb, "--help"], { env: {} });
      assert.equal(help.code, 0);
      assert.match(help.stdout, /--schema <name>/);
      assert.match(help.stdout, verb === "export" ? /--bodies/ : /--json/);
    }
  }
});
