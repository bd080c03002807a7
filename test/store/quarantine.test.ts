import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { identityDigest } from "../../src/message/identity.ts";
import { message, recordEffect, testInbox } from "../inbox/support.ts";
import type { QuarantineInsert } from "../../src/store/quarantine-entry.ts";

const name = { consumer: "accounting", handlerVersion: "1" };

const entry = (more: Partial<QuarantineInsert>): QuarantineInsert => ({
  identity: undefined,
  rawIdentity: undefined,
  key: undefined,
  type: undefined,
  headers: {},
  payload: null,
  fingerprint: { mode: "b", digest: "" },
  code: "malformed",
  error: "",
  attempts: 0,
  ...more,
});

test("keeps any error, any header, any identity and any bytes", { timeout: 60_000 }, async (t) => {
  const { store } = await testInbox(t);
  const anyText = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string().map((text) => `${text}\0\ud800`),
  );
  await fc.assert(
    fc.asyncProperty(
      anyText,
      fc.dictionary(anyText, anyText),
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
      fc.option(fc.uint8Array({ maxLength: 2_000 })),
      fc.option(anyText, { nil: undefined }),
      async (error, headers, rawIdentity, payload, key) => {
        const kept = await store.quarantine(
          name,
          entry({ error, headers, rawIdentity, payload, key, type: key }),
        );
        assert.equal(kept, "stored");
        const [row] = await store.quarantined.list({ limit: 1 });
        const whole = await store.quarantined.show(row?.id ?? "");
        assert.deepEqual(
          whole?.payload === null ? null : [...(whole?.payload ?? [])],
          payload === null ? null : [...payload],
        );
        assert.deepEqual(Object.entries(whole?.headers ?? {}), Object.entries(headers));
      },
    ),
    { numRuns: 60 },
  );
});

test("keeps a payload of 32 MiB and an error of 10 MB", { timeout: 60_000 }, async (t) => {
  const { store } = await testInbox(t);
  const payload = randomBytes(32 * 1024 * 1024);
  await store.quarantine(name, entry({ payload, error: "x".repeat(10_000_000) }));
  const [row] = await store.quarantined.list({});
  assert.equal(row?.payloadBytes, payload.byteLength);
  assert.ok((row?.error.length ?? 0) < 20_000);
  assert.match(row?.error ?? "", /10000000 characters/);
  const whole = await store.quarantined.show(row?.id ?? "");
  assert.ok(whole?.payload && payload.equals(whole.payload));
});

test("shows identity, code, text, attempts, first and last failure and handler version", async (t) => {
  const { inboxWith, store } = await testInbox(t, {
    retry: { delayMs: 10, maxAttempts: 2 },
    handlerVersion: "7",
  });
  const failing = () => Promise.reject(new Error("no such account"));
  await inboxWith({}).process(
    message("m1", { tenant: "t", key: "k", type: "paid", headers: { a: "1" } }),
    failing,
  );
  await inboxWith({}).process(
    message("m1", { tenant: "t", key: "k", type: "paid", headers: { a: "1" } }),
    failing,
  );
  const [row] = await store.quarantined.list({ consumer: "accounting", code: "attempts-exhausted" });
  assert.ok(row);
  const whole = await store.quarantined.show(row.id);
  assert.ok(whole);
  assert.deepEqual(
    [
      whole.tenant,
      whole.producer,
      whole.messageId,
      whole.key,
      whole.type,
      whole.attempts,
      whole.deliveries,
      whole.handlerVersion,
    ],
    ["t", "payments", "m1", "k", "paid", 2, 1, "7"],
  );
  assert.match(whole.error, /no such account/);
  assert.equal(Buffer.from(whole.payload ?? "").toString(), '{"id":"m1"}');
  assert.deepEqual(whole.headers, { a: "1" });
  assert.ok(whole.firstFailedAt < whole.lastFailedAt);
  assert.equal(whole.fingerprint.length, 64);
});

test("pages through the list without losing or repeating an entry", async (t) => {
  const { store } = await testInbox(t);
  for (let i = 0; i < 25; i++) await store.quarantine(name, entry({ error: `e${i}` }));
  await store.quarantine({ ...name, consumer: "other" }, entry({}));
  const ids: string[] = [];
  let after: string | undefined;
  for (;;) {
    const page = await store.quarantined.list({ consumer: "accounting", limit: 10, after });
    if (page.length === 0) break;
    ids.push(...page.map(({ id }) => id));
    after = page.at(-1)?.id;
  }
  assert.equal(new Set(ids).size, 25);
  assert.equal(ids.length, 25);
  assert.equal((await store.quarantined.list({})).length, 26);
});

test("finds nothing for an id that is none", async (t) => {
  const { store } = await testInbox(t);
  for (const id of ["", "x", "1; drop table quarantine", "9".repeat(19), "9".repeat(30), "-1"]) {
    assert.equal(await store.quarantined.show(id), undefined);
  }
});

test("makes no entry for a message that another worker applied between its failure and its quarantine", async (t) => {
  const { inbox, store } = await testInbox(t);
  await inbox.process(message("m1"), recordEffect);
  const identity = { tenant: "", producer: "payments", id: "m1" };
  const late = entry({
    identity: { digest: identityDigest("accounting", identity), ...identity },
    code: "attempts-exhausted",
  });
  assert.equal(await store.quarantine(name, late), "already-applied");
  assert.deepEqual(await store.quarantined.list({}), []);
});
