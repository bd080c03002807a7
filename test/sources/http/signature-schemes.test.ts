import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import test from "node:test";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { schemes, type SchemeName } from "../../../src/sources/http/signature-schemes.ts";
import { createVerify } from "../../../src/sources/http/verify.ts";

const secret = `whsec_${Buffer.from("a secret of thirty-two bytes or so").toString("base64")}`;
const at = 1_772_439_331;
const verifier = (scheme: SchemeName, secrets: string | string[] = secret, now = at * 1_000) =>
  createVerify({ scheme, secret: secrets }, () => now)!;
const hmac = (key: string, ...parts: (string | Uint8Array)[]) =>
  parts.reduce((sum, part) => sum.update(part), createHmac("sha256", key));

/** Headers that are right, by scheme. */
const signed: Readonly<Record<SchemeName, (body: Uint8Array, key: string) => Record<string, string>>> = {
  "standard-webhooks": (body, key) => ({
    "webhook-id": "msg_1",
    "webhook-timestamp": String(at),
    "webhook-signature": new Webhook(key).sign("msg_1", new Date(at * 1_000), Buffer.from(body).toString()),
  }),
  stripe: (body, key) => ({ "stripe-signature": `t=${at},v1=${hmac(key, `${at}.`, body).digest("hex")}` }),
  github: (body, key) => ({ "x-hub-signature-256": `sha256=${hmac(key, body).digest("hex")}` }),
  shopify: (body, key) => ({ "x-shopify-hmac-sha256": hmac(key, body).digest("base64") }),
};
const names = Object.keys(schemes) as SchemeName[];

for (const name of names) {
  test(`${name}: takes what is signed by any of the secrets, and no other body, secret or signature`, async () => {
    const other = `whsec_${Buffer.from("another one").toString("base64")}`;
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.nat(), async (text, place) => {
        const body = Buffer.from(`{"text":${JSON.stringify(text.toWellFormed())}}`);
        const headers = new Headers(signed[name](body, secret));
        assert.equal(await verifier(name)({ headers, body }), true);
        assert.equal(await verifier(name, [other, secret])({ headers, body }), true);
        assert.equal(await verifier(name, other)({ headers, body }), false);
        const changed = Buffer.from(body);
        changed[place % changed.length]! ^= 1;
        assert.equal(await verifier(name)({ headers, body: changed }), false);
      }),
      { numRuns: 50 },
    );
  });

  test(`${name}: any header is answered, never thrown at`, () => {
    const body = Buffer.from("{}");
    const right = signed[name](body, secret);
    const value = fc.oneof(
      fc.string(),
      fc.constantFrom(
        "",
        "v1,",
        "v1,a",
        "sha256=",
        "sha256=ab",
        "t=1",
        "t=,v1=",
        "t=1,t=2,v1=00",
        "v1=abcd",
        "=,=,,",
      ),
      // A part of what is right.
      fc.nat(200).map((length) => (Object.values(right).at(-1) ?? "").slice(0, -1 - length)),
    );
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(right)), value, (header, changed) => {
        const headers = new Headers(right);
        try {
          headers.set(header, changed);
        } catch {
          return;
        }
        fc.pre(headers.get(header) !== right[header]);
        assert.equal(verifier(name)({ headers, body }), false);
        headers.delete(header);
        assert.equal(verifier(name)({ headers, body }), false);
      }),
      { numRuns: 500 },
    );
  });
}

test("a signature that is older or newer than the tolerance is refused where a time is signed", () => {
  const body = Buffer.from("{}");
  for (const name of ["stripe", "standard-webhooks"] as const) {
    const headers = new Headers(signed[name](body, secret));
    for (const [offset, expected] of [
      [299, true],
      [301, false],
      [-299, true],
      [-301, false],
    ] as const) {
      assert.equal(
        verifier(name, secret, (at + offset) * 1_000)({ headers, body }),
        expected,
        `${name} ${offset}`,
      );
    }
  }
});

test("Standard Webhooks: a genuine signature for one id does not let another id in through the other header family", () => {
  const body = Buffer.from("{}");
  const right = signed["standard-webhooks"](body, secret);
  const svix = Object.fromEntries(
    Object.entries(right).map(([name, value]) => [name.replace("webhook", "svix"), value]),
  );
  assert.equal(verifier("standard-webhooks")({ headers: new Headers(svix), body }), true);
  // The identity would be read from webhook-id, which nobody signed.
  const headers = new Headers({ ...svix, "webhook-id": "forged" });
  assert.equal(verifier("standard-webhooks")({ headers, body }), false);
});
