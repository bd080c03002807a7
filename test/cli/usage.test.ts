import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { redactFor } from "../../src/cli/redact.ts";
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
