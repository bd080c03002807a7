import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { InboxError } from "../../src/errors.ts";
import { fingerprintMode, parseFingerprintMode } from "../../src/message/fingerprint-mode.ts";
import type { FingerprintOptions } from "../../src/message/fingerprint-mode.ts";
import { computeFingerprint } from "../../src/message/fingerprint.ts";
import type { FingerprintMode } from "../../src/message/fingerprint.ts";
import { createMessage } from "../../src/message/create-message.ts";
import { sampleJson } from "./samples.ts";

const digest = (mode: FingerprintMode, payload: string | Uint8Array | null): string =>
  computeFingerprint(mode, payload).digest;
const sha256 = (...parts: (string | Uint8Array)[]): string => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
};
const json = (...except: string[]): FingerprintMode => fingerprintMode({ by: "json", except });

interface Pair {
  readonly name: string;
  readonly a: string;
  readonly b: string;
  readonly same: Readonly<Record<string, boolean | string>>;
}

for (const { name, a, b, same } of sampleJson<{ pairs: Pair[] }>("18-json-same-semantics.json").pairs) {
  test(`sample pair "${name}": the fingerprints say the same or different as they should`, () => {
    assert.equal(digest("b", a) === digest("b", b), same["bytes"]);
    // A refused document is compared by its bytes; the byte order mark is left out.
    const expected = {
      "reject duplicate keys": false,
      reject: false,
      "strip one leading BOM, record it": true,
    };
    const jcs = same["jcs"]!;
    assert.equal(
      digest("j", a) === digest("j", b),
      typeof jcs === "string" ? expected[jcs as "reject"] : jcs,
    );
    assert.equal(
      digest("j", Buffer.from(a)) === digest("j", Buffer.from(b)),
      digest("j", a) === digest("j", b),
    );
    if ("jcs minus configured volatile paths" in same) {
      assert.equal(digest(json("/sentAt"), a), digest(json("/sentAt"), b));
      assert.notEqual(digest(json("/id"), a), digest(json("/id"), b));
    }
  });
}

test("a tombstone's digest is empty in every mode, and equals no body's", () => {
  for (const mode of ["b", "j", json("/a")] as const) {
    assert.deepEqual(computeFingerprint(mode, null), { mode, digest: "" });
    for (const payload of ["", "null", "{}"]) assert.match(digest(mode, payload), /^[0-9a-f]{64}$/);
  }
});

test("the digests are SHA-256 of the bytes, and of the canonical text", () => {
  assert.equal(digest("b", '{"b":1.0,"a":"é"}'), sha256('{"b":1.0,"a":"é"}'));
  assert.equal(digest("j", '{"b":1.0, "a":"\\u00e9"}'), sha256('{"a":"é","b":1}'));
  assert.equal(digest(json("/b"), '{"b":1.0, "a":"\\u00e9"}'), sha256('{"a":"é"}'));
});

const refused: readonly (readonly [string, Uint8Array | string])[] = [
  ["no UTF-8", Uint8Array.of(0x22, 0xff, 0x22)],
  ["no JSON", "hello"],
  ["nothing at all", ""],
  ["a duplicate key", '{"a":1,"a":1}'],
  ["an escaped lone surrogate", '"\\ud800"'],
  ["nesting without end", "[".repeat(1_000_000)],
  ["deep nesting that is JSON", "[".repeat(5_000) + "]".repeat(5_000)],
];

for (const [what, payload] of refused) {
  test(`a payload with ${what} is compared by its bytes, behind the byte 0xff`, () => {
    assert.equal(digest("j", payload), sha256(Uint8Array.of(0xff), payload));
    assert.equal(digest(json("/a"), payload), digest("j", payload));
  });
}

test("a text payload and its UTF-8 have one fingerprint", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.json(), fc.string({ unit: "grapheme" })),
      fc.constantFrom("b", "j", json("/a")),
      (text, mode) => {
        assert.equal(digest(mode, text), digest(mode, Buffer.from(text)));
      },
    ),
  );
});

test("a message computes its fingerprint once a mode", () => {
  const message = createMessage({ producer: "p", id: "1", payload: '{"a": 1}' });
  assert.equal(message.fingerprint("b"), message.fingerprint("b"));
  assert.equal(message.fingerprint("j"), message.fingerprint("j"));
  assert.notEqual(message.fingerprint("b").digest, message.fingerprint("j").digest);
});

test("options have one mode each, whatever the order of their pointers", () => {
  assert.equal(fingerprintMode({ by: "bytes" }), "b");
  assert.equal(fingerprintMode({ by: "json" }), "j");
  assert.equal(json(), "j");
  assert.equal(json("/b", "/a", "/b"), "j-/a,/b");
  assert.equal(json("/a/b", "/a", "/ab"), "j-/a,/ab");
  assert.equal(json("/a,b", "/c~0d"), "j-/a~2b,/c~0d");
  assert.equal(digest(json("/a,b"), '{"a,b":1}'), sha256("{}"));
});

test("a stored mode leaves out exactly what its options named", () => {
  const token = fc.string({
    unit: fc.constantFrom("a", "b", ",", "~0", "~1", "é", " ", "-", "0"),
    maxLength: 3,
  });
  const pointer = fc
    .array(token, { minLength: 1, maxLength: 3 })
    .map((tokens) => tokens.map((part) => `/${part}`).join(""));
  const member = (pointer: string): string =>
    JSON.stringify(
      pointer
        .slice(1)
        .split("/")
        .reduceRight<unknown>(
          (value, part) => ({ [part.replaceAll("~1", "/").replaceAll("~0", "~")]: value }),
          1,
        ),
    );
  fc.assert(
    fc.property(fc.array(pointer, { minLength: 1, maxLength: 4 }), pointer, (pointers, other) => {
      const mode = json(...pointers);
      const parsed = parseFingerprintMode(mode);
      assert.ok(parsed.by === "json" && parsed.except !== undefined);
      const covered = pointers.some((known) => other === known || other.startsWith(`${known}/`));
      const [here, gone] = [digest(mode, member(other)), digest(mode, member(other).replace("1}", "2}"))];
      assert.equal(here === gone, covered);
    }),
    { numRuns: 1000 },
  );
});

const wrong: readonly (readonly [unknown, RegExp])[] = [
  [{ by: "hash" }, /fingerprint\.by/],
  [undefined, /fingerprint\.by/],
  [{ by: "bytes", except: ["/a"] }, /fingerprint\.except/],
  [{ by: "json", except: "/a" }, /fingerprint\.except/],
  [{ by: "json", except: ["/ok", "sentAt"] }, /fingerprint\.except\[1\].*begin with/],
  [{ by: "json", except: [""] }, /whole document/],
  [{ by: "json", except: ["/a~2"] }, /after ~/],
  [{ by: "json", except: ["/a~"] }, /after ~/],
  [{ by: "json", except: [7] }, /fingerprint\.except\[0\]/],
  [{ by: "json", except: ["/a\0"] }, /NUL/],
  [{ by: "json", except: [`/${"x".repeat(2000)}`] }, /1024 bytes/],
];

for (const [options, rule] of wrong) {
  test(`fingerprint options ${JSON.stringify(options)?.slice(0, 60)} fail at construction, naming field and rule`, () => {
    assert.throws(
      () => fingerprintMode(options as FingerprintOptions),
      (error) => error instanceof InboxError && error.code === "invalid-option" && rule.test(error.message),
    );
  });
}

test("an unknown stored mode is refused, not taken for another", () => {
  for (const mode of ["", "x", "j-", "j-a", "jj", "b-/a"]) {
    assert.throws(
      () => computeFingerprint(mode as "b", null),
      (error) => error instanceof InboxError && error.code === "invalid-option",
    );
  }
});
