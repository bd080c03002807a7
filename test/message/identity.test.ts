import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { createIdentityDigest, identityDigest } from "../../src/message/identity.ts";

// Few characters and many of them digits, colons and separators: parts that look like one another's ends.
const name = fc
  .array(fc.constantFrom("a", "|", ":", "0", "1", "2", "é", "/", "\u{1f600}"), { maxLength: 4 })
  .map((list) => list.join(""));
const parts = fc.tuple(name, name, name, name);
type Parts = readonly [string, string, string, string];

const digestOf = ([consumer, tenant, producer, id]: Parts): string =>
  identityDigest(consumer, { tenant, producer, id });

test("different identities never share a digest, however their parts run together", () => {
  fc.assert(
    fc.property(parts, parts, (a, b) => {
      assert.equal(digestOf(a) === digestOf(b), JSON.stringify(a) === JSON.stringify(b));
    }),
    { numRuns: 2000 },
  );
});

test("moving the border between two parts changes the digest", () => {
  fc.assert(
    fc.property(parts, fc.nat(2), fc.nat(), (all, border, cut) => {
      const joined = all[border]! + all[border + 1]!;
      const at = cut % (joined.length + 1);
      if (!joined.slice(0, at).isWellFormed()) return;
      const moved = [...all] as [string, string, string, string];
      moved[border] = joined.slice(0, at);
      moved[border + 1] = joined.slice(at);
      assert.equal(digestOf(moved) === digestOf(all), moved[border] === all[border]);
    }),
    { numRuns: 2000 },
  );
});

test("the digest of one consumer's many messages is the digest of each", () => {
  fc.assert(
    fc.property(name, fc.array(fc.tuple(name, name, name), { maxLength: 10 }), (consumer, messages) => {
      const digest = createIdentityDigest(consumer);
      for (const [tenant, producer, id] of messages) {
        assert.equal(digest({ tenant, producer, id }), identityDigest(consumer, { tenant, producer, id }));
      }
    }),
  );
});

test("the digest is 16 bytes of SHA-256 over the lengths and bytes of the parts, as a uuid can hold them", () => {
  const expected = createHash("sha256")
    .update("10:accounting0:11:/billing/eu3:é1")
    .digest("hex")
    .slice(0, 32);
  const digest = identityDigest("accounting", { tenant: "", producer: "/billing/eu", id: "é1" });
  assert.equal(digest, expected);
  assert.match(digest, /^[0-9a-f]{32}$/);
});

test("look-alike ids stay apart: nothing is normalised", () => {
  const ids = ["é", "e\u0301", "e", "E", " e", "e ", "42", "042", "\u0435"];
  assert.equal(
    new Set(ids.map((id) => identityDigest("c", { tenant: "", producer: "p", id }))).size,
    ids.length,
  );
});
