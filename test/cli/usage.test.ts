import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fitNotes } from "../../src/cli/notes.ts";
import { redactFor } from "../../src/cli/redact.ts";
import { runHere } from "./in-process.ts";
import { runInbox } from "./run-inbox.ts";

const packageFile = join(import.meta.dirname, "../../package.json");

test("help has examples, goes to stdout and is no failure", async () => {
  const { code, stdout, stderr } = await runInbox(["--help"]);
  assert.equal(code, 0);
  assert.match(stdout, /inbox run handler\.ts --source orders\.ndjson/);
  assert.match(stdout, /quarantine groups/);
  assert.equal(stderr, "");
});

test("the version is the package's", async () => {
  const { version } = JSON.parse(readFileSync(packageFile, "utf8")) as { version: string };
  assert.deepEqual(await runInbox(["--version"]), { code: 0, stdout: `${version}\n`, stderr: "" });
});

for (const args of [
  [],
  ["no-such-command"],
  ["migrate", "--no-such-option"],
  ["quarantine", "show"],
  ["quarantine", "list", "--limit", "0"],
  ["quarantine", "list", "--status", "lost"],
]) {
  test(`wrong usage ends with 2 and says so on stderr: inbox ${args.join(" ")}`, async () => {
    const { code, stdout, stderr } = await runInbox(args);
    assert.equal(code, 2, stderr);
    assert.equal(stdout, "");
    assert.notEqual(stderr, "");
  });
}

test("without any database named, a person is told which variable to set", async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), "inbox-cli-"));
  t.after(() => rmSync(cwd, { recursive: true }));
  const { code, stdout, stderr } = await runInbox(["migrate"], { cwd });
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /DATABASE_URL/);
});

for (const [name, url] of [
  ["unreachable", "postgres://someone:s3cret-word@127.0.0.1:1/shop"],
  ["with an encoded password", "postgres://someone:s3cret%2Dword@127.0.0.1:1/shop"],
  ["of another kind", "mysql://someone:s3cret-word@127.0.0.1:1/shop"],
  ["broken", "postgres://someone:s3cret-word@[:::1/shop"],
] as const) {
  test(`a URL ${name} fails without telling its password`, async () => {
    const { code, stdout, stderr } = await runInbox(["migrate"], { env: { DATABASE_URL: url } });
    assert.ok(code === 1 || code === 2, `ended with ${code}`);
    assert.notEqual(stderr, "");
    assert.doesNotMatch(stdout + stderr, /s3cret/);
  });
}

test("passwords are hidden wherever they stand", () => {
  const redact = redactFor({ DATABASE_URL: "postgres://a:p%40ss-word@h/d", PGPASSWORD: "other-word" });
  const table: readonly (readonly [string, string])[] = [
    ["connect postgres://a:p%40ss-word@h/d failed", "connect postgres://a:***@h/d failed"],
    ["password p@ss-word refused", "password *** refused"],
    ["amqp://x:y@host and redis://:z@host", "amqp://x:***@host and redis://:***@host"],
    ["postgres://h/d?user=a&password=hidden&x=1", "postgres://h/d?user=a&password=***&x=1"],
    ["other-word", "***"],
    ["nothing to hide: a@b", "nothing to hide: a@b"],
  ];
  for (const [text, expected] of table) assert.equal(redact(text), expected);
});

test("the help of every command fits a terminal of 80 columns, with what all have in common last", async () => {
  for (const path of await commandsBelow([])) {
    const { code, stdout } = await runHere([...path, "--help"], { env: {} });
    assert.equal(code, 0, path.join(" "));
    for (const line of stdout.split("\n")) {
      // A command in quotes is not broken.
      assert.ok(line.length <= 80 || line.includes("'"), `inbox ${path.join(" ")} --help: ${line}`);
    }
    assert.doesNotMatch(stdout, /\(default:\s+(?:""|\[\])\)/);
    assert.match(stdout, /-h, --help .*\n(?:\n|$)/);
  }
});

test("notes keep the remark of an example beside it where there is room, else above", () => {
  const text = "\nOne two\nthree.\n\nExamples:\n  $ inbox a    does it\n  $ inbox b";
  assert.equal(fitNotes(text, 40), "\nOne two three.\n\nExamples:\n  $ inbox a    does it\n  $ inbox b");
  assert.equal(fitNotes(text, 12), "\nOne two\nthree.\n\nExamples:\n  # does it\n  $ inbox a\n  $ inbox b");
  assert.equal(fitNotes("  $ inbox run x --aa b --cc d", 24), "  $ inbox run x --aa b \\\n      --cc d");
});

/** A command and all below it, as their help names them. */
async function commandsBelow(path: readonly string[]): Promise<readonly (readonly string[])[]> {
  const { stdout } = await runHere([...path, "--help"], { env: {} });
  const list = stdout.split("\nCommands:\n")[1]?.split("\n\n")[0] ?? "";
  const names = [...list.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = ""]) => name);
  const below = await Promise.all(
    names.filter((name) => name !== "help").map((name) => commandsBelow([...path, name])),
  );
  return [path, ...below.flat()];
}
