import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { hasCode } from "../../src/errors.ts";
import { createProtection, openLength, type PayloadKeys } from "../../src/store/protection.ts";

const owner = { consumer: "accounting", digest: "0123456789abcdef0123456789abcdef" };

function keyring(...ids: readonly string[]): PayloadKeys & { readonly ring: Map<string, Uint8Array> } {
  const ring = new Map(ids.map((id) => [id, randomBytes(32)]));
  return {
    ring,
    current: () => {
      const [id, key] = [...ring].at(-1)!;
      return { id, key };
    },
    byId: (id) => Promise.resolve(ring.get(id)),
  };
}

test("any body comes back as it was, and nothing of it is readable meanwhile", async () => {
  const protection = createProtection(keyring("k1"));
  await fc.assert(
    fc.asyncProperty(
      fc.option(fc.uint8Array({ maxLength: 3_000 })),
      fc.dictionary(fc.string(), fc.string()),
      async (payload, headers) => {
        const text = JSON.stringify(headers);
        const stored = await protection.seal(owner, { payload, headers }, text);
        assert.equal(stored.keyId, "k1");
        assert.match(stored.headers, /^sealed:/);
        assert.equal(openLength(stored.payload, stored.keyId), payload?.byteLength ?? 0);
        if (payload !== null && payload.byteLength > 8)
          assert.ok(!Buffer.from(stored.payload!).includes(Buffer.from(payload)));
        const open = await protection.open(owner, stored);
        assert.deepEqual(
          open.payload === null ? null : [...open.payload],
          payload === null ? null : [...payload],
        );
        assert.deepEqual(JSON.stringify(open.headers), JSON.stringify(JSON.parse(text)));
      },
    ),
    { numRuns: 100 },
  );
});

test("a sealed body opens for no other message, no other consumer, and not as its own headers", async () => {
  const protection = createProtection(keyring("k1"));
  const stored = await protection.seal(owner, { payload: Buffer.from("secret"), headers: {} }, '{"a":"b"}');
  const asHeaders = { ...stored, headers: `sealed:${Buffer.from(stored.payload!).toString("base64")}` };
  for (const [who, what] of [
    [{ ...owner, digest: "f".repeat(32) }, stored],
    [{ ...owner, digest: undefined }, stored],
    [{ ...owner, consumer: "other" }, stored],
    [owner, asHeaders],
  ] as const) {
    await assert.rejects(protection.open(who, what), (error) => hasCode(error, "payload-damaged"));
  }
});

test("a changed or cut byte anywhere is noticed", async () => {
  const protection = createProtection(keyring("k1"));
  const stored = await protection.seal(owner, { payload: Buffer.from("secret"), headers: {} }, "{}");
  for (let at = 0; at < stored.payload!.byteLength; at++) {
    const changed = Buffer.from(stored.payload!);
    changed[at]! ^= 1;
    await assert.rejects(protection.open(owner, { ...stored, payload: changed }), {
      code: "payload-damaged",
    });
    const cut = stored.payload!.subarray(0, at);
    await assert.rejects(protection.open(owner, { ...stored, payload: cut }), { code: "payload-damaged" });
  }
});

test("what an old key sealed opens after a rotation, and not once that key is gone", async () => {
  const keys = keyring("2025");
  const protection = createProtection(keys);
  const old = await protection.seal(owner, { payload: Buffer.from("old"), headers: {} }, "{}");
  keys.ring.set("2026", randomBytes(32));
  const fresh = await protection.seal(owner, { payload: Buffer.from("new"), headers: {} }, "{}");
  assert.deepEqual([old.keyId, fresh.keyId], ["2025", "2026"]);
  assert.equal(Buffer.from((await protection.open(owner, old)).payload!).toString(), "old");
  keys.ring.delete("2025");
  await assert.rejects(protection.open(owner, old), { code: "payload-key-missing", retryable: true });
  assert.equal(Buffer.from((await protection.open(owner, fresh)).payload!).toString(), "new");
});

test("a provider that fails, or gives what is no key, is told without telling the key", async () => {
  const secret = Buffer.from("0123456789");
  const wrong: readonly PayloadKeys[] = [
    { current: () => Promise.reject(new Error("key service away")), byId: () => undefined },
    { current: () => ({ id: "short", key: secret }), byId: () => undefined },
    { current: () => ({ id: "", key: randomBytes(32) }), byId: () => undefined },
    { current: () => undefined as never, byId: () => undefined },
  ];
  for (const keys of wrong) {
    const sealing = createProtection(keys).seal(owner, { payload: null, headers: {} }, "{}");
    await assert.rejects(sealing, (error: Error) => {
      assert.doesNotMatch(error.message, /0123456789/);
      return hasCode(error, "payload-key-missing");
    });
  }
});

test("without keys a body is stored as it came, and a sealed one says that keys are needed", async () => {
  const plain = createProtection(undefined);
  const payload = Buffer.from("x");
  assert.deepEqual(await plain.seal(owner, { payload, headers: {} }, "{}"), {
    payload,
    headers: "{}",
    keyId: null,
  });
  const sealed = await createProtection(keyring("k1")).seal(owner, { payload, headers: {} }, "{}");
  await assert.rejects(plain.open(owner, sealed), { code: "payload-key-missing" });
});
