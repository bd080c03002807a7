import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { InboxError } from "../errors.ts";
import { showValue } from "../message/show-value.ts";

/** A key of 32 bytes for AES-256-GCM, and the name it is kept under. A name never gets a second key. */
export interface PayloadKey {
  /** 1 to 128 characters; stored beside everything it sealed. */
  readonly id: string;
  readonly key: Uint8Array;
}

/**
 * Where keys come from: a file, an environment variable, a key service. Both may answer at once or later, and are asked
 * for every message, so remember what is slow to fetch. To rotate, let `current` give another id and keep the old one
 * in `byId` for as long as something is sealed with it. One key may seal about four thousand million bodies.
 */
export interface PayloadKeys {
  /** The key for what is written from now on. */
  current(): PayloadKey | Promise<PayloadKey>;
  /** The key of this name, or its bytes; `undefined` where there is none any more. */
  byId(id: string): PayloadKey | Uint8Array | undefined | Promise<PayloadKey | Uint8Array | undefined>;
}

/** Whose body it is: what a sealed body is bound to, so that it opens nowhere else. */
export interface BodyOwner {
  readonly consumer: string;
  /** The digest of the message's identity, 32 hex digits; `undefined` where it has none. */
  readonly digest: string | undefined;
}

/** What a producer wrote. */
export interface Body {
  readonly payload: Uint8Array | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** A body as it is stored. Without a key id it is as it came. */
export interface StoredBody {
  readonly payload: Uint8Array | null;
  /** A JSON object, or `sealed:` and base64. */
  readonly headers: string;
  readonly keyId: string | null;
}

/**
 * Seals what is stored for later and opens it again. Headers are sealed with the payload: webhooks carry credentials in
 * them, and what is worth hiding in a body is often repeated there. Key, type and identity stay readable: order, lists
 * and duplicates need them.
 */
export interface Protection {
  /** Whether there are keys. */
  readonly seals: boolean;
  /**
   * Seals with the current key; without keys only writes the headers as text. Rejects with `payload-key-missing` if no
   * key can be had: then nothing may be stored, and the message not be acknowledged.
   */
  seal(owner: BodyOwner, body: Body, headersText: string): Promise<StoredBody>;
  /**
   * The body as it came. Rejects with `payload-key-missing` if the key is not to be had, and with `payload-damaged` if
   * what is stored was changed, or belongs to another message.
   */
  open(owner: BodyOwner, stored: StoredBody): Promise<Body>;
  /** `open` for a payload that was kept without its headers. `keyId`: `undefined` or null for one that is not sealed. */
  openPayload(
    owner: BodyOwner,
    stored: { readonly payload: Uint8Array | null; readonly keyId?: string | null | undefined },
  ): Promise<Uint8Array | null>;
}

const version = 1;
const nonceBytes = 12;
const tagBytes = 16;
const overhead = 1 + nonceBytes + tagBytes;
const headersMark = "sealed:";

/** How many bytes a stored payload has when it is open. */
export const openLength = (payload: Uint8Array | null, keyId: string | null): number =>
  payload === null ? 0 : keyId === null ? payload.byteLength : Math.max(0, payload.byteLength - overhead);

/** What `seal` adds to a payload, in bytes. */
export const sealedOverhead: number = overhead;

export function createProtection(keys: PayloadKeys | undefined): Protection {
  return {
    seals: keys !== undefined,
    async seal(owner, { payload }, headersText) {
      if (keys === undefined) return { payload, headers: headersText, keyId: null };
      const { id, key } = await currentKey(keys);
      return {
        payload: payload === null ? null : sealBytes(key, owner, "payload", payload),
        headers: headersMark + sealBytes(key, owner, "headers", Buffer.from(headersText)).toString("base64"),
        keyId: id,
      };
    },
    async open(owner, { payload, headers, keyId }) {
      if (keyId === null) return { payload, headers: headersIn(headers) };
      const key = await keyOf(keys, keyId);
      const text = openBytes(key, owner, "headers", Buffer.from(headers.slice(headersMark.length), "base64"));
      return {
        payload: payload === null ? null : openBytes(key, owner, "payload", payload),
        headers: headersIn(text.toString()),
      };
    },
    async openPayload(owner, { payload, keyId }) {
      if (payload === null || keyId === null || keyId === undefined) return payload;
      return openBytes(await keyOf(keys, keyId), owner, "payload", payload);
    },
  };
}

/** Headers over the limit were cut when they were stored, and are no JSON any more. */
function headersIn(text: string): Body["headers"] {
  try {
    return JSON.parse(text) as Body["headers"];
  } catch {
    return { "cut headers": text };
  }
}

/** What a ciphertext is bound to. A payload moved to another message, or taken for headers, does not open. */
const boundTo = ({ consumer, digest }: BodyOwner, part: "payload" | "headers"): Buffer =>
  Buffer.from(JSON.stringify(["transactional-inbox", version, part, consumer, digest ?? null]));

function sealBytes(key: Uint8Array, owner: BodyOwner, part: "payload" | "headers", open: Uint8Array): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(boundTo(owner, part));
  const sealed = [cipher.update(open), cipher.final()];
  return Buffer.concat([Buffer.of(version), nonce, cipher.getAuthTag(), ...sealed]);
}

function openBytes(
  key: Uint8Array,
  owner: BodyOwner,
  part: "payload" | "headers",
  sealed: Uint8Array,
): Buffer {
  if (sealed.byteLength < overhead || sealed[0] !== version) throw damaged(part);
  const nonce = sealed.subarray(1, 1 + nonceBytes);
  const tag = sealed.subarray(1 + nonceBytes, overhead);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(boundTo(owner, part));
  decipher.setAuthTag(tag);
  try {
    return Buffer.concat([decipher.update(sealed.subarray(overhead)), decipher.final()]);
  } catch (cause) {
    throw damaged(part, cause);
  }
}

const damaged = (part: string, cause?: unknown): InboxError =>
  new InboxError(
    "payload-damaged",
    `The sealed ${part} of a message does not open with its key: it was changed, or is another message's.`,
    { cause },
  );

async function currentKey(keys: PayloadKeys): Promise<PayloadKey> {
  let given: unknown;
  try {
    given = await keys.current();
  } catch (cause) {
    throw missing("The current payload key could not be had.", cause);
  }
  const { id, key } = (given ?? {}) as { id?: unknown; key?: unknown };
  if (typeof id !== "string" || id === "" || id.length > 128 || /[\0-\u001f]/.test(id) || !id.isWellFormed())
    throw missing(`payloadKeys.current gave a key without a usable id: ${showValue(id)}.`);
  return { id, key: checkedKey(key, id) };
}

async function keyOf(keys: PayloadKeys | undefined, id: string): Promise<Uint8Array> {
  if (keys === undefined) {
    const text = `A body is sealed with the key ${showValue(id)}, and no keys were given. Give payloadKeys.`;
    throw missing(text);
  }
  let given: PayloadKey | Uint8Array | undefined;
  try {
    given = await keys.byId(id);
  } catch (cause) {
    throw missing(`The payload key ${showValue(id)} could not be had.`, cause);
  }
  if (given === undefined || given === null) {
    throw missing(
      `There is no payload key ${showValue(id)}; keep old keys while something is sealed with them.`,
    );
  }
  return checkedKey(given instanceof Uint8Array ? given : given.key, id);
}

function checkedKey(key: unknown, id: string): Uint8Array {
  if (key instanceof Uint8Array && key.byteLength === 32) return key;
  // Never the value itself: it may be a key of another length.
  const what = key instanceof Uint8Array ? `${key.byteLength} bytes` : "no bytes";
  throw missing(`The payload key ${showValue(id)} must be 32 bytes (AES-256), not ${what}.`);
}

const missing = (text: string, cause?: unknown): InboxError =>
  new InboxError("payload-key-missing", text, { cause });
