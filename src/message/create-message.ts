import { isUint8Array } from "node:util/types";
import { InboxError } from "../errors.ts";
import { checkContent, checkIdentity, storableKey } from "./check-message.ts";
import type { Fault, MessageCandidate } from "./check-message.ts";
import { computeFingerprint } from "./fingerprint.ts";
import type { Fingerprint, FingerprintMode } from "./fingerprint.ts";
import type { Message, MessageInput, Received, RejectedMessage } from "./message.ts";
import { rejectMessage } from "./reject-message.ts";
import { showValue } from "./show-value.ts";
import { decodeUtf8, withoutByteOrderMark } from "./utf8.ts";

/**
 * Checks the input and makes a message of it. Throws InboxError `no-identity`, `invalid-identity`, `identity-too-long`,
 * or `invalid-option` for anything else that is wrong.
 *
 * Bytes and headers are not copied: until the message is settled they must not change, so give a copy of a buffer that
 * is used again.
 */
export function createMessage(input: MessageInput): Message {
  const fault = checkIdentity(input) ?? checkContent(input);
  if (fault === undefined) return build(input);
  throw new InboxError(fault.code === "malformed" ? "invalid-option" : fault.code, fault.text);
}

/**
 * `createMessage` for what comes from outside: never throws. What cannot be a message becomes a rejected one that keeps
 * all it came with: payload, and identity of whatever type. A payload text with a lone surrogate is kept as UTF-16LE.
 * The bytes are not copied, as in `createMessage`.
 */
export function receiveMessage(input: MessageCandidate): Received {
  const candidate = typeof input === "object" && input !== null ? input : {};
  const fault = checkIdentity(candidate) ?? checkContent(candidate);
  return fault === undefined ? build(candidate as MessageInput) : reject(candidate, fault);
}

/**
 * `receiveMessage` for a payload text that has been parsed already, as a part of its envelope: `json` must be what
 * `JSON.parse` makes of it.
 */
export function receiveParsed(input: MessageCandidate, json: unknown): Received {
  const received = receiveMessage(input);
  return received instanceof CheckedMessage ? received.parsedAs(json) : received;
}

/** The same message with the data that the consumer's schema made of its payload. Cheap: everything else is shared. */
export function withData<Data>(message: Message, data: Data): Message<Data> {
  if (message instanceof CheckedMessage) return message.withData(data);
  const { tenant, producer, id, key, type, time, headers, bytes } = message;
  return build({ tenant, producer, id, payload: bytes, key, type, time, headers }).withData(data);
}

const noHeaders: Readonly<Record<string, string>> = Object.freeze({});

const build = (input: MessageInput): CheckedMessage<undefined> =>
  new CheckedMessage(
    input.tenant ?? "",
    input.producer,
    input.id,
    storableKey(input.key),
    input.type,
    input.time,
    input.headers ?? noHeaders,
    { payload: input.payload, json: undefined, hasJson: false, fingerprints: undefined },
    undefined,
  );

/** What all copies of one message share. A text is turned into bytes when somebody asks for them. */
interface Body {
  payload: Uint8Array | string | null;
  json: unknown;
  hasJson: boolean;
  fingerprints: Fingerprint[] | undefined;
}

class CheckedMessage<Data> implements Message<Data> {
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly time: Date | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Data;
  readonly #body: Body;

  constructor(
    tenant: string,
    producer: string,
    id: string,
    key: string | undefined,
    type: string | undefined,
    time: Date | undefined,
    headers: Readonly<Record<string, string>>,
    body: Body,
    data: Data,
  ) {
    this.tenant = tenant;
    this.producer = producer;
    this.id = id;
    this.key = key;
    this.type = type;
    this.time = time;
    this.headers = headers;
    this.data = data;
    this.#body = body;
  }

  get bytes(): Uint8Array | null {
    const body = this.#body;
    if (typeof body.payload === "string") body.payload = Buffer.from(body.payload);
    return body.payload;
  }

  text(): string | null {
    const { payload } = this.#body;
    if (payload === null || typeof payload === "string") return payload;
    const text = decodeUtf8(payload);
    if (text === undefined) throw new InboxError("malformed", `The payload of ${this.#name()} is no UTF-8.`);
    return text;
  }

  json(): unknown {
    const body = this.#body;
    if (body.hasJson) return body.json;
    const text = this.text();
    try {
      body.json = text === null ? null : (JSON.parse(withoutByteOrderMark(text)) as unknown);
    } catch (cause) {
      throw new InboxError("malformed", `The payload of ${this.#name()} is no JSON.`, { cause });
    }
    body.hasJson = true;
    return body.json;
  }

  fingerprint(mode: FingerprintMode): Fingerprint {
    const body = this.#body;
    const known = body.fingerprints?.find((fingerprint) => fingerprint.mode === mode);
    if (known !== undefined) return known;
    const fingerprint = computeFingerprint(mode, body.payload);
    if (body.fingerprints === undefined) body.fingerprints = [fingerprint];
    else body.fingerprints.push(fingerprint);
    return fingerprint;
  }

  parsedAs(json: unknown): this {
    this.#body.json = json;
    this.#body.hasJson = true;
    return this;
  }

  withData<Other>(data: Other): CheckedMessage<Other> {
    const { tenant, producer, id, key, type, time, headers } = this;
    return new CheckedMessage(tenant, producer, id, key, type, time, headers, this.#body, data);
  }

  #name(): string {
    return `message ${showValue(this.id)} of ${showValue(this.producer)}`;
  }
}

function reject(input: MessageCandidate, fault: Fault): RejectedMessage {
  const { tenant, producer, id, payload, key, type, headers } = input;
  return rejectMessage({
    ...fault,
    identity: { tenant, producer, id },
    key: typeof key === "string" ? storableKey(key) : undefined,
    type: typeof type === "string" ? type : undefined,
    headers: stringsOf(headers),
    bytes: bytesOf(payload),
  });
}

/** A text's bytes without loss: UTF-8, or UTF-16LE for one with a lone surrogate. */
export const storeText = (text: string): Uint8Array =>
  Buffer.from(text, text.isWellFormed() ? "utf8" : "utf16le");

function bytesOf(payload: unknown): Uint8Array | null {
  if (typeof payload === "string") return storeText(payload);
  return isUint8Array(payload) ? payload : null;
}

function stringsOf(headers: unknown): Record<string, string> | undefined {
  if (typeof headers !== "object" || headers === null) return undefined;
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}
