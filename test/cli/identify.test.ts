import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { runInbox } from "./run-inbox.ts";

const samples = join(import.meta.dirname, "../samples");
const sample = (name: string): string => join(samples, name);

test("identify shows every sample in one command, and ends with 3 as some would go to quarantine", async () => {
  const files = readdirSync(samples).map(sample);
  const { code, stdout, stderr } = await runInbox(["identify", ...files]);
  assert.equal(code, 3, stderr);
  for (const file of files) assert.ok(stdout.includes(file));
  assert.match(stdout, /id +"REF\+26'03:1\?"/);
  assert.match(stdout, /quarantine +unsafe-xml/);
  assert.match(stdout, /verdict +conflict of #1/);

  assert.doesNotMatch(stdout, /[\u0000-\u0009\u000b-\u001f]/);
});

test("identify --json prints one object a message, with what a person would see", async () => {
  const { code, stdout } = await runInbox(["identify", "--json", sample("15-as4-usermessage.xml")]);
  assert.equal(code, 0);
  const one = JSON.parse(stdout) as Record<string, unknown>;
  assert.equal(one["id"], "b1f5c0de-0001-4a7e-9a55-0a1b2c3d4e5f@seller.example.test");
  assert.deepEqual(
    [one["format"], one["guessed"], one["kind"], one["number"]],
    ["as4", "it is XML", "message", 1],
  );
  assert.match((one["why"] as { identity: string }).identity, /MessageId/);
  assert.match((one["fingerprint"] as { digest: string }).digest, /^[0-9a-f]{64}$/);
});

test("identify reads stdin, and takes the format and its options by name", async () => {
  const args = [
    "identify",
    "-",
    "--id-path",
    "/order/id",
    "--producer",
    "shop",
    "--key-path",
    "/order/id",
    "--fingerprint",
    "json",
    "--except",
    "/at",
    "--json",
  ];
  const { code, stdout } = await runInbox(args, {
    input: '{"order":{"id":9007199254740993},"at":1}\n{"order":{"id":9007199254740993},"at":2}\n',
  });
  assert.equal(code, 0);
  const [first, second] = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    [first!["producer"], first!["id"], first!["key"]],
    ["shop", "9007199254740993", "9007199254740993"],
  );
  assert.deepEqual(second!["verdict"], { is: "duplicate", of: 1 });
});

for (const args of [
  [],
  ["x.json", "--format", "nosuch"],
  ["x.json", "--format", "json"],
  ["x.json", "--format", "header"],
  ["x.json", "--id-path", "/a~b"],
  ["x.json", "--except", "/a"],
]) {
  test(`wrong usage ends with 2: inbox identify ${args.join(" ")}`, async () => {
    const { code, stderr } = await runInbox(["identify", ...args]);
    assert.equal(code, 2, stderr);
    assert.notEqual(stderr, "");
  });
}

test("a file that is not there ends with 1 and is named", async () => {
  const { code, stderr } = await runInbox(["identify", "no-such-file.json"]);
  assert.equal(code, 1);
  assert.match(stderr, /no-such-file\.json/);
});
