import { isDate, isUint8Array } from "node:util/types";
import { InboxError } from "../errors.ts";
import { checkContent, checkIdentity, storableKey } from "../message/check-message.ts";
import { computeFingerprint } from "../message/fingerprint.ts";
import { maxConsumerBytes } from "../message/limits.ts";
import { showValue } from "../message/show-value.ts";
import { isLongerThan, isStorableText } from "../message/text-rules.ts";
import type { NewEffect } from "../store/outbox.ts";
import { effectDigest, effectLane } from "./effect-id.ts";
import type { EffectInput } from "./effect.ts";

/** A hundred years. */
const longestMs = 3_155_760_000_000;

/** Checks an effect and makes of it what is stored. Throws `invalid-effect`, saying what is wrong with which. */
export function checkEffect(
  producer: string,
  input: EffectInput,
  added: Readonly<Record<string, string>> | undefined,
): NewEffect {
  if (typeof input !== "object" || input === null) {
    throw invalid(undefined, `An effect must be an object, not ${showValue(input)}.`);
  }
  const { id, destination, key, type, time, tenant } = input;
  const { payload, headers: own } = bodyOf(input);
  const headers = { ...added, ...own };
  checkDestination(id, destination);
  const candidate = { tenant, producer, id, payload, key, type, headers };
  const fault = checkIdentity(candidate) ?? checkContent(candidate);
  if (fault !== undefined) throw invalid(id, fault.text.replace("The message has", "It has"));
  if (time !== undefined && !(isDate(time) && !Number.isNaN(time.getTime()))) {
    throw invalid(id, `The time must be a valid Date, not ${showValue(time)}.`);
  }
  checkMs(id, "delayMs", input.delayMs);
  checkMs(id, "lifetimeMs", input.lifetimeMs);

  const identity = { tenant: tenant ?? "", producer, id };
  const digest = effectDigest(destination, identity);
  const storedKey = storableKey(key);
  const bytes = typeof payload === "string" ? Buffer.from(payload) : payload;
  return {
    ...{ digest, lane: effectLane(digest, storedKey), destination, ...identity },
    ...{ key: storedKey, type, time, headers, payload: bytes },
    fingerprint: computeFingerprint("b", bytes).digest,
    delayMs: input.delayMs === undefined || input.delayMs === 0 ? undefined : Math.ceil(input.delayMs),
    lifetimeMs: input.lifetimeMs === undefined ? undefined : Math.ceil(input.lifetimeMs),
  };
}

/** The payload, and the headers with the content type that follows from `json`. */
function bodyOf(input: EffectInput): {
  readonly payload: Uint8Array | string | null;
  readonly headers: Readonly<Record<string, string>> | undefined;
} {
  const { id, payload, json, headers } = input;
  if ((payload === undefined) === (json === undefined)) {
    throw invalid(id, "It needs a payload, or json, and not both.");
  }
  if (payload !== undefined) {
    if (payload === null || typeof payload === "string" || isUint8Array(payload)) return { payload, headers };
    throw invalid(id, `The payload must be bytes, a text or null, not ${showValue(payload)}.`);
  }
  let text: string | undefined;
  try {
    text = JSON.stringify(json);
  } catch (cause) {
    throw invalid(id, "Its json cannot be written as JSON.", cause);
  }
  if (text === undefined) throw invalid(id, "Its json cannot be written as JSON.");
  const typed = Object.keys(headers ?? {}).some((name) => name.toLowerCase() === "content-type");
  return { payload: text, headers: typed ? headers : { ...headers, "content-type": "application/json" } };
}

function checkDestination(id: unknown, destination: unknown): void {
  const fits =
    typeof destination === "string" &&
    destination !== "" &&
    isStorableText(destination) &&
    !isLongerThan(destination, maxConsumerBytes);
  if (!fits) {
    throw invalid(
      id,
      `The destination must be a name of 1 to ${maxConsumerBytes} bytes, not ${showValue(destination)}.`,
    );
  }
}

function checkMs(id: unknown, field: string, value: number | undefined): void {
  if (value === undefined || (typeof value === "number" && value >= 0 && value <= longestMs)) return;
  throw invalid(id, `${field} must be a number of milliseconds, 0 or more, not ${showValue(value)}.`);
}

const invalid = (id: unknown, why: string, cause?: unknown): InboxError =>
  new InboxError("invalid-effect", `The effect ${showValue(id)} cannot be sent. ${why}`, { cause });
