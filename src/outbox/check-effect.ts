import { isDate, isUint8Array } from "node:util/types";
import { InboxError } from "../errors.ts";
import { checkContent, checkIdentity, storableKey } from "../message/check-message.ts";
import { computeFingerprint } from "../message/fingerprint.ts";
import { maxConsumerBytes } from "../message/limits.ts";
import { showValue } from "../message/show-value.ts";
import { isLongerThan, isStorableText } from "../message/text-rules.ts";
import type { AskedEffect, NewEffect } from "../store/outbox.ts";
import { effectDigest, effectLane } from "./effect-id.ts";
import type { EffectInput } from "./effect.ts";

/** A hundred years. */
const longestMs = 3_155_760_000_000;

const noHeaders: Readonly<Record<string, string>> = {};

/** Checks an effect and makes of it what is stored. Throws `invalid-effect`, saying what is wrong with which. */
export const checkEffect = (
  producer: string,
  input: EffectInput,
  added: Readonly<Record<string, string>> | undefined,
): NewEffect => newEffect(readEffect(producer, (input as EffectInput | null)?.id, input, added));

/**
 * Checks an effect, without computing what its name comes to: that takes as long as everything else. `id` goes before
 * the input's own. Throws `invalid-effect`.
 */
export function readEffect(
  producer: string,
  id: unknown,
  input: Omit<EffectInput, "id">,
  added: Readonly<Record<string, string>> | undefined,
): AskedEffect {
  if (typeof input !== "object" || input === null) {
    throw invalid(undefined, `An effect must be an object, not ${showValue(input)}.`);
  }
  const { destination, key, type, time, tenant, delayMs, lifetimeMs } = input;
  const { payload, headers: own } = bodyOf(id, input);
  const headers = added === undefined ? (own ?? noHeaders) : { ...added, ...own };
  checkDestination(id, destination);
  const candidate = { tenant, producer, id, payload, key, type, headers };
  const fault = checkIdentity(candidate) ?? checkContent(candidate);
  if (fault !== undefined) throw invalid(id, fault.text.replace("The message has", "It has"));
  if (time !== undefined && !(isDate(time) && !Number.isNaN(time.getTime()))) {
    throw invalid(id, `The time must be a valid Date, not ${showValue(time)}.`);
  }
  checkMs(id, "delayMs", delayMs);
  checkMs(id, "lifetimeMs", lifetimeMs);
  return {
    destination,
    tenant: tenant ?? "",
    producer,
    id: id as string,
    key: storableKey(key),
    type,
    time,
    headers,
    payload,
    delayMs: delayMs === undefined || delayMs === 0 ? undefined : Math.ceil(delayMs),
    lifetimeMs: lifetimeMs === undefined ? undefined : Math.ceil(lifetimeMs),
  };
}

/** With its name's digest, its lane and its fingerprint. */
export function newEffect(asked: AskedEffect): NewEffect {
  const { payload } = asked;
  const bytes = typeof payload === "string" ? Buffer.from(payload) : payload;
  const digest = effectDigest(asked.destination, asked);
  return {
    ...asked,
    ...{ digest, lane: effectLane(digest, asked.key), payload: bytes },
    fingerprint: computeFingerprint("b", bytes).digest,
  };
}

/** The payload, and the headers with the content type that follows from `json`. */
function bodyOf(
  id: unknown,
  input: Omit<EffectInput, "id">,
): {
  readonly payload: Uint8Array | string | null;
  readonly headers: Readonly<Record<string, string>> | undefined;
} {
  const { payload, json, headers } = input;
  if ((payload === undefined) === (json === undefined)) {
    throw invalid(id, "It needs a payload, or json, and not both.");
  }
  if (payload !== undefined) {
    if (payload === null || typeof payload === "string" || isUint8Array(payload)) return { payload, headers };
    throw invalid(
      id,
      `The payload must be bytes, a text or null, not ${showValue(payload)}; give other values as json.`,
    );
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
