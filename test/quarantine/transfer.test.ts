import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { chunkLines } from "../../src/quarantine/chunk-lines.ts";
import { readExportedLine } from "../../src/quarantine/import-line.ts";
import { createQuarantine } from "../../src/quarantine/quarantine.ts";
import type { QuarantineEntry } from "../../src/store/quarantine-entry.ts";
import type { Store } from "../../src/store/store.ts";
import type { PayloadKeys } from "../../src/store/protection.ts";
import { ann, entryId, put, testStore } from "./support.ts";

const all = async (lines: AsyncIterable<string>): Promise<string> => {
  let text = "";
  for await (const line of lines) text += line;
  return text;
};

/** What an import must bring over, of every open entry, by its message. */
async function kept(store: Store): Promise<Record<string, unknown>[]> {
  const rows = await store.quarantined.list({ first: "oldest", limit: 1_000 });
  const entries = await Promise.all(rows.map(({ id }) => store.quarantined.show(id)));
  return entries.map((entry) => {
    const { id: _, decision: _decision, payload, headers, ...rest } = entry as QuarantineEntry;
    return { ...rest, headers: Object.entries(headers), payload: payload && [...payload] };
  });
}

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string().map((text) => `${text}\0\ud800`),
);

test(
  "an export brings every byte over, whatever producers wrote, and importing it again imports nothing",
  { timeout: 120_000 },
  async (t) => {
    const from = await testStore(t);
    const to = await testStore(t);
    let n = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.option(fc.uint8Array({ maxLength: 500 })),
        fc.dictionary(anyText, anyText, { maxKeys: 4 }),
        anyText,
        fc.option(anyText, { nil: undefined }),
        fc.anything(),
        fc.boolean(),
        async (payload, headers, error, key, rawIdentity, named) => {
          await put(from.store, `m${n++}`, { payload, headers, error, key, type: key, named, rawIdentity });
        },
      ),
      { numRuns: 60 },
    );
    const source = createQuarantine({ store: from.store });
    const target = createQuarantine({ store: to.store });
    const lines = await all(source.export());
    const counts = { lines: n, known: 0, applied: 0, decided: 0 };
    assert.deepEqual(await target.import([lines]), { ...counts, imported: n });
    assert.deepEqual(await kept(to.store), await kept(from.store));

    assert.deepEqual(await target.import([Buffer.from(lines)]), { ...counts, known: n, imported: 0 });
    assert.deepEqual(await source.import(source.export()), { ...counts, known: n, imported: 0 });
    assert.equal(await target.count(), n);
    // What came from an import exports as the same again, but for its number.
    const numberless = (text: string): string => text.replaceAll(/"id":"\d+"/g, "");
    assert.equal(numberless(await all(target.export())), numberless(lines));
  },
);

test("two imports of the same entries in another order, and in the same file twice, import each once", async (t) => {
  const from = await testStore(t);
  const to = await testStore(t);
  for (let i = 0; i < 150; i++) await put(from.store, `m${i}`, { error: "\u4e2d".repeat(i * 200) });
  const lines: string[] = [];
  for await (const line of createQuarantine({ store: from.store }).export()) lines.push(line);
  const target = createQuarantine({ store: to.store });
  const sums = await Promise.all([
    target.import([...lines, ...lines]),
    target.import(lines.toReversed()),
    target.import(lines),
  ]);
  assert.equal(
    sums.reduce((sum, { imported }) => sum + imported, 0),
    150,
  );
  assert.equal(await target.count(), 150);
  const errors = async (store: Store): Promise<string[]> =>
    (await store.quarantined.list({ limit: 1_000 })).map(({ error }) => error).sort();
  assert.deepEqual(await errors(to.store), await errors(from.store));
});

test("lines before a refused one are imported, and the rest when the file is in order", async (t) => {
  const from = await testStore(t);
  const to = await testStore(t);
  for (const id of ["m1", "m2"]) await put(from.store, id);
  const lines: string[] = [];
  for await (const line of createQuarantine({ store: from.store }).export()) lines.push(line);
  const target = createQuarantine({ store: to.store });
  await assert.rejects(target.import([lines[0]!, "{}\n", lines[1]!]), { message: /^Line 2: / });
  assert.equal(await target.count(), 1);
  assert.equal((await target.import(lines)).imported, 1);
});

test("entries that were decided on are not imported, nor what is applied", async (t) => {
  const from = await testStore(t);
  const to = await testStore(t);
  const source = createQuarantine({ store: from.store });
  const target = createQuarantine({ store: to.store });
  for (const id of ["open", "discarded", "applied", "conflict"]) await put(from.store, id);
  await source.discard(await entryId(from.store, "discarded"), ann);
  await put(to.store, "applied");
  await put(to.store, "conflict", { payload: "another" });
  await to.pool.query("delete from quarantine");
  await to.pool.query("update message set processed_at = now()");
  const summary = await target.import(source.export({ status: "all" }));
  assert.deepEqual(summary, { lines: 4, imported: 2, known: 0, applied: 1, decided: 1 });
  assert.deepEqual(
    (await target.list({ first: "oldest" })).map(({ messageId }) => messageId),
    ["open", "conflict"],
  );
  // An imported entry is decided on like any other; one whose identity is applied with another body is not run.
  await target.retry(await entryId(to.store, "open"), ann);
  await assert.rejects(target.retry(await entryId(to.store, "conflict"), ann), { code: "already-applied" });
});

test("what was decided on, or purged and imported anew, is told apart", async (t) => {
  const { store } = await testStore(t);
  const quarantine = createQuarantine({ store });
  await put(store, "m1");
  const lines = await all(quarantine.export());
  await quarantine.discard(await entryId(store, "m1"), ann);
  assert.equal((await quarantine.import([lines])).known, 1);
  assert.equal(await quarantine.count(), 0);
  assert.equal(await quarantine.purge({ decidedBeforeMs: 0 }, ann), 1);
  assert.equal((await quarantine.import([lines])).imported, 1);
  assert.equal(await quarantine.count(), 1);
});

test("sealed bodies stay sealed in an export, and open only where the key is", async (t) => {
  const key = randomBytes(32);
  const payloadKeys: PayloadKeys = { current: () => ({ id: "k1", key }), byId: () => key };
  const from = await testStore(t, { payloadKeys });
  const to = await testStore(t, { payloadKeys });
  const without = await testStore(t);
  const secret = '{"card":"4111111111111111"}';
  await put(from.store, "m1", { payload: secret, headers: { authorization: "s3cret" } });
  await put(from.store, "tombstone", { payload: null });
  const source = createQuarantine({ store: from.store, redact: ["/card"] });

  const sealed = await all(source.export());
  assert.doesNotMatch(sealed, /4111|s3cret/);
  assert.doesNotMatch(sealed, new RegExp(Buffer.from(secret).toString("base64").slice(0, 20)));
  const target = createQuarantine({ store: to.store });
  assert.equal((await target.import([sealed])).imported, 2);
  assert.deepEqual(await kept(to.store), await kept(from.store));

  const blind = createQuarantine({ store: without.store });
  assert.equal((await blind.import([sealed])).imported, 2);
  await assert.rejects(blind.show(await entryId(without.store, "m1")), { code: "payload-key-missing" });
  assert.equal((await blind.list())[1]?.payloadBytes, secret.length);

  const open = await testStore(t);
  const opened = createQuarantine({ store: open.store });
  assert.equal((await opened.import(source.export({}, "open"))).imported, 2);
  const entry = await opened.entry(await entryId(open.store, "m1"));
  assert.equal(Buffer.from(entry!.payload!).toString(), secret);
  assert.equal(entry!.keyId, undefined);

  const redacted = await all(source.export({}, "redacted"));
  assert.doesNotMatch(redacted, /4111|s3cret/);
  assert.match(redacted, /\{\\"card\\":\\"\*\*\*\\"\}/);
  await assert.rejects(target.import([redacted]), { code: "import-refused", message: /^Line 1: .*hidden/ });
});

test("a large export is read in pages", { timeout: 60_000 }, async (t) => {
  const { store, pool } = await testStore(t);
  await put(store, "first", { payload: randomBytes(9 * 1024 * 1024) });
  await put(store, "second", { payload: randomBytes(9 * 1024 * 1024) });
  await pool.query(`
    insert into quarantine (consumer, headers, fingerprint, fingerprint_mode, code, error, attempts, first_failed_at,
                            last_failed_at, handler_version, error_group, error_shape, payload_bytes)
    select 'accounting', '{}', '', 'b', 'malformed', 'e' || i, 0, now(), now(), '1', 'g', 'e', 0
      from generate_series(1, 1200) i`);
  const seen = new Set<string>();
  let bytes = 0;
  for await (const line of createQuarantine({ store }).export()) {
    const { id, payload } = JSON.parse(line) as { id: string; payload: string | null };
    seen.add(id);
    bytes += Buffer.from(payload ?? "", "base64").length;
  }
  assert.deepEqual([seen.size, bytes], [1_202, 18 * 1024 * 1024]);
});

const goodLine = async (t: Parameters<typeof testStore>[0]): Promise<Record<string, unknown>> => {
  const { store } = await testStore(t);
  await put(store, "m1", { payload: '{"a":1}', key: "k", headers: { h: "1" } });
  const lines = await all(createQuarantine({ store }).export());
  return JSON.parse(lines) as Record<string, unknown>;
};

test("a line that is no exported entry is refused with its number and the reason", async (t) => {
  const good = await goodLine(t);
  const wrong: readonly (readonly [string, unknown, RegExp])[] = [
    ["inboxQuarantine", 2, /version 1/],
    ["consumer", "", /consumer/],
    ["consumer", "c".repeat(129), /consumer/],
    ["messageId", "a\0b", /identity/],
    ["messageId", 7, /identity/],
    ["producer", undefined, /identity/],
    ["tenant", "\ud800", /identity/],
    ["payload", "not base64!", /payload/],
    ["payload", "e30=", /fingerprint/],
    ["payload", undefined, /payload/],
    ["payload", { length: 5 }, /payload/],
    ["headers", { h: 1 }, /headers/],
    ["headers", ["h"], /headers/],
    ["fingerprint", "zz", /fingerprint/],
    ["fingerprintMode", "md5", /fingerprintMode/],
    ["fingerprintMode", "b\0", /fingerprintMode/],
    ["status", "gone", /status/],
    ["code", "", /code/],
    ["code", "c\0", /code/],
    ["error", "e\0", /error/],
    ["error", 5, /error/],
    ["attempts", -1, /attempts/],
    ["attempts", 1.5, /attempts/],
    ["attempts", 2 ** 31, /attempts/],
    ["attempts", "1", /attempts/],
    ["deliveries", 0, /deliveries/],
    ["firstFailedAt", "yesterday", /firstFailedAt/],
    ["firstFailedAt", "2030-13-01T00:00:00.000Z", /firstFailedAt/],
    ["firstFailedAt", "0000-01-01T00:00:00.000Z", /firstFailedAt/],
    ["lastFailedAt", 5, /lastFailedAt/],
    ["key", { toString: "x" }, /key/],
    ["sealed", { keyId: "k", headers: "plain", payload: null }, /sealed/],
    ["sealed", { keyId: "", headers: "sealed:AAAA", payload: null }, /sealed.keyId/],
    ["sealed", null, /sealed/],
  ];
  for (const [name, value, reason] of wrong) {
    const text = JSON.stringify({ ...good, [name]: value });
    assert.throws(
      () => readExportedLine({ number: 7, text }),
      (error: Error & { code?: string }) =>
        error.code === "import-refused" && error.message.startsWith("Line 7: ") && reason.test(error.message),
      `${name}: ${JSON.stringify(value)}`,
    );
  }
  for (const text of ["", "[]", "null", "7", "{", '"x"']) {
    assert.throws(() => readExportedLine({ number: 1, text }), { code: "import-refused" }, text);
  }
});

test("no file at all makes an import throw anything but its own error, or write an entry it should not", async (t) => {
  const { store } = await testStore(t);
  const quarantine = createQuarantine({ store });
  const good = await goodLine(t);
  const mutated = fc
    .tuple(fc.constantFrom(...Object.keys(good), "sealed", "rawIdentity", "time", "__proto__"), fc.anything())
    .map(([name, value]) => {
      try {
        const text = JSON.stringify(value);
        return JSON.stringify({ ...good, x: 0 }).replace(
          '"x":0',
          `${JSON.stringify(name)}:${text ?? "null"}`,
        );
      } catch {
        return "{";
      }
    });
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        mutated,
        fc.string({ unit: "binary" }),
        fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      ),
      async (chunk) => {
        const before = await quarantine.count();
        try {
          const { imported } = await quarantine.import([chunk]);
          assert.equal((await quarantine.count()) - before, imported);
        } catch (error) {
          assert.equal((error as { code?: string }).code, "import-refused", String(error));
          assert.equal(await quarantine.count(), before);
        }
      },
    ),
    { numRuns: 150 },
  );
});

test("a file is cut at its line feeds however it comes in pieces", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: "grapheme" }).map((text) => text.replaceAll(/[\n\r]/g, ""))),
      fc.array(fc.integer({ min: 1, max: 9 })),
      async (texts, cuts) => {
        const bytes = Buffer.from(texts.join("\r\n"));
        const pieces: Uint8Array[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const length = cuts[i % Math.max(1, cuts.length)] ?? bytes.length;
          pieces.push(bytes.subarray(at, at + length));
          at += length;
        }
        const lines: { number: number; text: string }[] = [];
        for await (const line of chunkLines(pieces, 1_000)) lines.push(line);
        const expected = texts
          .map((text, index) => ({ number: index + 1, text: text.trim() }))
          .filter(({ text }) => text !== "");
        assert.deepEqual(lines, expected);
      },
    ),
  );
  const longest = async (limit: number): Promise<void> => {
    for await (const _ of chunkLines(["ok\n", "1234", "5678"], limit));
  };
  await longest(8);
  await assert.rejects(longest(7), { code: "import-refused", message: /^Line 2: .*longer than 7/ });
  const noText = async (): Promise<void> => {
    for await (const _ of chunkLines([Buffer.of(10, 0xff, 10)], 100));
  };
  await assert.rejects(noText, { code: "import-refused", message: /^Line 2: .*UTF-8/ });
});
