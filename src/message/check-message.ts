import { hash } from "node:crypto";
import { isDate, isUint8Array } from "node:util/types";
import { maxIdBytes, maxKeyBytes, maxProducerBytes, maxTenantBytes, maxTypeBytes } from "./limits.ts";
import type { RejectionCode } from "./message.ts";
import { showValue } from "./show-value.ts";
import { isLongerThan, isStorableText } from "./text-rules.ts";

/** A `MessageInput` that nobody has checked: any field may hold anything. */
export interface MessageCandidate {
  readonly tenant?: unknown;
  readonly producer?: unknown;
  readonly id?: unknown;
  readonly payload?: unknown;
  readonly key?: unknown;
  readonly type?: unknown;
  readonly time?: unknown;
  readonly headers?: unknown;
}

/** Why a candidate is no message. */
export interface Fault {
  readonly code: RejectionCode;
  readonly text: string;
}

function checkName(name: string, value: unknown, limit: number): Fault | undefined {
  if (typeof value !== "string") {
    return { code: "invalid-identity", text: `The ${name} must be a text, not ${showValue(value)}.` };
  }
  if (isLongerThan(value, limit)) {
    return { code: "identity-too-long", text: `The ${name} ${showValue(value)} is over ${limit} bytes.` };
  }
  if (!isStorableText(value)) {
    return {
      code: "invalid-identity",
      text: `The ${name} ${showValue(value)} holds a NUL or a lone surrogate.`,
    };
  }
  return undefined;
}

const isMissing = (value: unknown): boolean => value === undefined || value === null || value === "";

/** The first thing that keeps a candidate's identity from being one. Nothing is trimmed, normalised or made up. */
export function checkIdentity(candidate: MessageCandidate): Fault | undefined {
  const { id, producer, tenant } = candidate;
  if (isMissing(id)) return { code: "no-identity", text: `The message has no id (${showValue(id)}).` };
  if (isMissing(producer)) {
    return { code: "no-identity", text: `The message has no producer (${showValue(producer)}).` };
  }
  return (
    checkName("id", id, maxIdBytes) ??
    checkName("producer", producer, maxProducerBytes) ??
    (tenant === undefined ? undefined : checkName("tenant", tenant, maxTenantBytes))
  );
}

const malformed = (text: string): Fault => ({ code: "malformed", text });

/** The first thing besides the identity that keeps a candidate from being a message: always `malformed`. */
export function checkContent(candidate: MessageCandidate): Fault | undefined {
  const { payload, key, type, time, headers } = candidate;
  if (typeof payload === "string") {
    if (!payload.isWellFormed()) {
      return malformed("The payload is a text with a lone surrogate, which UTF-8 cannot write.");
    }
  } else if (payload !== null && !isUint8Array(payload)) {
    return malformed(`The payload must be bytes, a text or null (a tombstone), not ${showValue(payload)}.`);
  }
  if (key !== undefined && key !== null && typeof key !== "string") {
    return malformed(`The key must be a text, not ${showValue(key)}.`);
  }
  if (type !== undefined) {
    if (typeof type !== "string") return malformed(`The type must be a text, not ${showValue(type)}.`);
    if (isLongerThan(type, maxTypeBytes) || !isStorableText(type)) {
      return malformed(
        `The type ${showValue(type)} is over ${maxTypeBytes} bytes, or holds a NUL or a lone surrogate.`,
      );
    }
  }
  if (time !== undefined && !(isDate(time) && !Number.isNaN(time.getTime()))) {
    return malformed(`The time must be a valid Date, not ${showValue(time)}.`);
  }
  return headers === undefined ? undefined : checkHeaders(headers);
}

function checkHeaders(headers: unknown): Fault | undefined {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    return { code: "malformed", text: `The headers must be an object, not ${showValue(headers)}.` };
  }
  for (const name in headers) {
    const value = (headers as Record<string, unknown>)[name];
    if (typeof value !== "string") {
      return {
        code: "malformed",
        text: `The header ${showValue(name)} must be a text, not ${showValue(value)}.`,
      };
    }
  }
  return undefined;
}

/**
 * The key as it is kept. A key is never stored as data, it only says what belongs together: one that is over
 * `maxKeyBytes` or holds a NUL or a lone surrogate is replaced by its digest. Equal keys stay equal and different ones
 * different, so order and lanes are what they would have been; dropping it would lose the order silently, and rejecting
 * the message would lose a good one.
 */
export function storableKey(key: string | null | undefined): string | undefined {
  if (key === undefined || key === null) return undefined;
  if (!isLongerThan(key, maxKeyBytes) && isStorableText(key)) return key;
  // UTF-16, because UTF-8 would merge lone surrogates.
  return `sha256:${hash("sha256", Buffer.from(key, "utf16le"), "hex")}`;
}
