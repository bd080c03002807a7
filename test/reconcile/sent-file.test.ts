import assert from "node:assert/strict";
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { computeFingerprint } from "../../src/message/fingerprint.ts";
import { sentFile, type SentFileOptions } from "../../src/reconcile/sent-file.ts";
import type { SentMessage } from "../../src/reconcile/sent.ts";
import { onTestEnd } from "../support/cleanup.ts";

const always = { since: undefined, until: undefined };

async function fileOf(t: TestContext, name: string, content: string | Uint8Array): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "inbox-sent-"));
  onTestEnd(t, () => rm(directory, { recursive: true }));
  const path = join(directory, name);
  await writeFile(path, content);
  return path;
}

async function read(path: string, options: SentFileOptions = {}): Promise<SentMessage[]> {
  const reading = await sentFile(path, { producer: "p", ...options }).open();
  try {
    const all: SentMessage[] = [];
    for await (const batch of reading.read(always)) all.push(...batch);
    const again: SentMessage[] = [];
    for await (const batch of reading.read(always)) again.push(...batch);
    assert.deepEqual(again, all, "a second reading is the same");
    return all;
  } finally {
    await reading.close();
  }
}

test("a file of ids: each line as it stands, without blank lines, CR and the byte order mark", async (t) => {
  const path = await fileOf(t, "sent.txt", "\ufeffa\r\n\n b \n{3F2504E0-4F89-11D3}\nżółw");
  assert.deepEqual(
    (await read(path)).map(({ id }) => id),
    ["a", " b ", "{3F2504E0-4F89-11D3}", "żółw"],
  );
});

test("a file of objects: names, times, payloads and fingerprints of its own", async (t) => {
  const digest = computeFingerprint("j", '{"a":1}').digest;
  const path = await fileOf(
    t,
    "sent.ndjson",
    [
      { id: "1", time: "2026-11-30T07:31:19.123456+01:00", payload: "x", other: [1] },
      { id: "2", producer: "q", tenant: "t", fingerprint: digest, fingerprintMode: "j" },
      { id: "3", producer: null, fingerprint: "" },
    ]
      .map((line) => JSON.stringify(line))
      .join("\n"),
  );
  assert.deepEqual(await read(path), [
    {
      ...{ tenant: "", producer: "p", id: "1", fingerprint: computeFingerprint("b", "x") },
      time: Date.parse("2026-11-30T06:31:19.123Z"),
    },
    { tenant: "t", producer: "q", id: "2", fingerprint: { mode: "j", digest }, time: undefined },
    { tenant: "", producer: "p", id: "3", fingerprint: { mode: "b", digest: "" }, time: undefined },
  ]);
  const [first] = await read(path, { fingerprint: { by: "json" } });
  assert.deepEqual(first?.fingerprint, computeFingerprint("j", "x"));
});

const bytes = (...parts: (string | number[])[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));

for (const [what, name, content, said] of [
  [
    "an id over 1,024 bytes",
    "f.txt",
    `a\n\nb\n${"x".repeat(1025)}\n`,
    /line 4: The id .* is over 1024 bytes/,
  ],
  ["bytes that are no UTF-8", "f.txt", bytes("a\n", [0xff, 0xfe], "\n"), /line 2: It is no UTF-8/],
  ["a NUL", "f.txt", "a\nb\0c\n", /line 2: .* NUL/],
  ["a line of megabytes", "f.txt", `a\n${"x".repeat(3_000_000)}\nb`, /line 2: It has 3000000 bytes/],
  ["objects in a file of ids", "f.txt", '{"id":"a"}\n', /line 1: It looks like JSON/],
  ["what is no JSON", "f.ndjson", '{"id":"a"}\n{"id":\n', /line 2: It is no JSON/],
  ["a list in place of an object", "f.jsonl", '["a"]\n', /line 1: It is an array of 1/],
  [
    "a number for an id",
    "f.ndjson",
    '{"id":"1"}\n{"id":9007199254740993}\n',
    /line 2: .* write it in quotes/,
  ],
  ["an object for an id", "f.ndjson", '{"id":{"toString":1}}\n', /line 1: The id must be a text/],
  ["a prototype for an id", "f.ndjson", '{"__proto__":{"id":"a"}}\n', /line 1: The message has no id/],
  ["a lone surrogate", "f.ndjson", '{"id":"\\ud800"}\n', /line 1: .* lone surrogate/],
  ["a time without zone", "f.ndjson", '{"id":"a","time":"2026-11-30 07:31"}\n', /line 1: The time/],
  ["a time as a number", "f.ndjson", '{"id":"a","time":1}\n', /line 1: The time 1/],
  ["a short fingerprint", "f.ndjson", '{"id":"a","fingerprint":"abc"}\n', /line 1: The fingerprint/],
  [
    "an unknown mode",
    "f.ndjson",
    `{"id":"a","fingerprint":"${"0".repeat(64)}","fingerprintMode":"x"}\n`,
    /line 1: .*mode/,
  ],
  [
    "a payload that is no text",
    "f.ndjson",
    '{"id":"a","payload":{"a":1}}\n',
    /line 1: The payload must be a text/,
  ],
  ["nesting without end", "f.ndjson", `{"id":${"[".repeat(200_000)}\n`, /line 1/],
] as const) {
  test(`a file with ${what} is refused by its line`, async (t) => {
    const path = await fileOf(t, name, content);
    await assert.rejects(read(path), (error: Error & { code?: string }) => {
      assert.equal(error.code, "sent-refused");
      assert.match(error.message, said);
      assert.ok(error.message.length < 700, "it repeats no more than a piece of what it refuses");
      return true;
    });
  });
}

test("an id that looks like JSON is one where ids were asked for", async (t) => {
  const path = await fileOf(t, "f.txt", '{"id":"a"}\n');
  assert.deepEqual(
    (await read(path, { format: "ids" })).map(({ id }) => id),
    ['{"id":"a"}'],
  );
});

test("a file that grows while it is read is refused", async (t) => {
  const path = await fileOf(t, "f.txt", "a\n");
  const reading = await sentFile(path, { producer: "p" }).open();
  try {
    await appendFile(path, "b\n");
    await assert.rejects(
      async () => {
        for await (const _ of reading.read(always)) continue;
      },
      { code: "sent-refused", message: /changed while it was read/ },
    );
  } finally {
    await reading.close();
    await reading.close();
  }
});

test("a directory is refused, and what is not there is named", async (t) => {
  const path = await fileOf(t, "f.txt", "");
  await assert.rejects(sentFile(join(path, "..")).open(), { code: "sent-refused" });
  await assert.rejects(sentFile(`${path}.no`).open(), /ENOENT/);
});
