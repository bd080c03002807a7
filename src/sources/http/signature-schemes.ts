import { createHmac, timingSafeEqual } from "node:crypto";

/** What is verified: the headers and the body exactly as they came. */
export interface SignedRequest {
  readonly headers: Headers;
  readonly body: Uint8Array;
}

export interface SchemeSettings {
  readonly keys: readonly Buffer[];
  readonly toleranceMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export type SchemeName = "standard-webhooks" | "stripe" | "github" | "shopify";

export interface Scheme {
  /** The key in a secret as its vendor shows it; `undefined` if it is none. */
  readonly key: (secret: string) => Buffer | undefined;
  /** Total: whatever the headers hold, it answers. */
  readonly verify: (request: SignedRequest, settings: SchemeSettings) => boolean;
}

// A header may list many signatures during a rotation; each costs a comparison for every secret.
const maxSignatures = 20;

const plainKey = (secret: string): Buffer => Buffer.from(secret, "utf8");

/**
 * Standard Webhooks 1.0 (standardwebhooks.com, also Svix): HMAC-SHA256 over `id.timestamp.body`, in base64 behind `v1,`;
 * the secret is base64 behind `whsec_`. The id that is verified is the one that becomes the identity.
 */
const standardWebhooks: Scheme = {
  key(secret) {
    const text = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret;
    const key = Buffer.from(text, "base64");
    return /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) && key.length > 0 ? key : undefined;
  },
  verify({ headers, body }, settings) {
    // Never one from each family: the signature must be over the id that is taken.
    const family = headers.has("webhook-id") ? "webhook" : "svix";
    const id = headers.get(`${family}-id`) ?? "";
    const timestamp = headers.get(`${family}-timestamp`) ?? "";
    if (id === "" || !isFresh(timestamp, settings)) return false;
    const signatures = (headers.get(`${family}-signature`) ?? "")
      .split(" ")
      .filter((part) => part.startsWith("v1,"))
      .map((part) => fromBase64(part.slice("v1,".length)));
    return anyMatches(signatures, settings.keys, [Buffer.from(`${id}.${timestamp}.`, "latin1"), body]);
  },
};

/**
 * Stripe (stripe.com/docs/webhooks/signatures): `Stripe-Signature: t=TIME,v1=HEX[,v1=HEX]`, HMAC-SHA256 over `t.body`.
 * Every attempt has a time and a signature of its own.
 */
const stripe: Scheme = {
  key: plainKey,
  verify({ headers, body }, settings) {
    const parts = (headers.get("stripe-signature") ?? "").split(",").map((part) => part.trim());
    const valuesOf = (name: string): string[] =>
      parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1));
    const times = valuesOf("t");
    const [time = ""] = times;
    if (times.length !== 1 || !isFresh(time, settings)) return false;
    return anyMatches(valuesOf("v1").map(fromHex), settings.keys, [Buffer.from(`${time}.`, "latin1"), body]);
  },
};

/**
 * GitHub (docs.github.com, "Validating webhook deliveries"): `X-Hub-Signature-256: sha256=HEX`, HMAC-SHA256 over the
 * body. Neither a time nor the delivery's id is signed: TLS is what keeps a request from being sent again by others.
 */
const github: Scheme = {
  key: plainKey,
  verify({ headers, body }, settings) {
    const value = headers.get("x-hub-signature-256") ?? "";
    if (!value.startsWith("sha256=")) return false;
    return anyMatches([fromHex(value.slice("sha256=".length))], settings.keys, [body]);
  },
};

/**
 * Shopify (shopify.dev, "Verify webhooks"): `X-Shopify-Hmac-SHA256`, HMAC-SHA256 over the body in base64. As with GitHub
 * neither a time nor the webhook's id is signed.
 */
const shopify: Scheme = {
  key: plainKey,
  verify({ headers, body }, settings) {
    const value = headers.get("x-shopify-hmac-sha256") ?? "";
    return anyMatches([fromBase64(value)], settings.keys, [body]);
  },
};

export const schemes: Readonly<Record<SchemeName, Scheme>> = {
  "standard-webhooks": standardWebhooks,
  stripe,
  github,
  shopify,
};

/** Whether a time in whole seconds is within the tolerance, before or after. */
function isFresh(seconds: string, { now, toleranceMs }: SchemeSettings): boolean {
  return /^\d{1,12}$/.test(seconds) && Math.abs(now() - Number(seconds) * 1_000) <= toleranceMs;
}

const fromHex = (text: string): Buffer =>
  /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, "hex") : Buffer.alloc(0);

const fromBase64 = (text: string): Buffer =>
  /^[A-Za-z0-9+/]{43}=$/.test(text) ? Buffer.from(text, "base64") : Buffer.alloc(0);

function anyMatches(
  signatures: readonly Buffer[],
  keys: readonly Buffer[],
  signed: readonly Uint8Array[],
): boolean {
  let matches = false;
  for (const key of keys) {
    const hmac = createHmac("sha256", key);
    for (const part of signed) hmac.update(part);
    const expected = hmac.digest();
    // timingSafeEqual throws for other lengths; how long a signature is, is no secret.
    for (const signature of signatures.slice(0, maxSignatures)) {
      if (signature.length === expected.length && timingSafeEqual(signature, expected)) matches = true;
    }
  }
  return matches;
}
