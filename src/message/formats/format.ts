import type { Fault, MessageCandidate } from "../check-message.ts";
import { receiveMessage, storeText } from "../create-message.ts";
import type { FingerprintOptions } from "../fingerprint-mode.ts";
import { isRejected } from "../message.ts";
import type { Received } from "../message.ts";
import { rejectMessage } from "../reject-message.ts";
import { headerTexts, keyText } from "./header-value.ts";

/** One delivery as its transport gave it. What is `unknown` may hold anything. */
export interface RawDelivery {
  /** `null` where the transport has a delivery without a body (a Kafka tombstone). */
  readonly body: Uint8Array | string | null;
  /**
   * Headers of HTTP, Kafka, NATS or AMQP as the client gave them, or the values of SQS message attributes: an object, a
   * Map, or a list of pairs or of one-member objects; values are texts, bytes, or lists of those.
   */
  readonly headers?: unknown;
  /** What the transport says besides headers: AMQP basic properties, or the fields of an SQS message. */
  readonly properties?: unknown;
  /** The broker's own key: a Kafka key, an SQS message group. */
  readonly key?: unknown;
  /** Where it came from: a topic, queue, subject, path or file name. */
  readonly channel?: string | undefined;
  /** Default `""`. From the connection, never from the message. */
  readonly tenant?: string | undefined;
}

/** Where each part of a message was taken from, and why there. */
export interface Why {
  readonly identity: string;
  readonly payload: string;
  readonly key: string;
  readonly time: string;
}

/** What a format found: a message (or what was rejected as one), or something that is none and needs no handling. */
export type ReadItem =
  | { readonly kind: "message"; readonly received: Received; readonly why: Why }
  | { readonly kind: "ignored"; readonly reason: string };

/**
 * Reads deliveries of one form. Total: whatever it is given, it answers with items and never throws, in time and memory
 * linear in the delivery. Most deliveries give one item; a batch gives one for each of its messages.
 */
export interface Format {
  readonly name: string;
  /** The fingerprint that a resend keeps in this form. */
  readonly fingerprint: FingerprintOptions;
  read(delivery: RawDelivery): readonly ReadItem[];
}

/** For whatever a format does not say or could not reach. */
export const noWhy: Why = {
  identity: "none was found",
  payload: "the whole delivery",
  key: "none",
  time: "none",
};

export const ignored = (reason: string): readonly ReadItem[] => [{ kind: "ignored", reason }];

/** The candidate as one item. A rejected one keeps the whole delivery, not only the part that would be its payload. */
export function readAs(delivery: RawDelivery, candidate: MessageCandidate, why: Why): ReadItem {
  const { tenant = delivery.tenant, producer, id, payload, key, type, time } = candidate;
  const headers = candidate.headers ?? headerTexts(delivery.headers);
  const received = receiveMessage({ tenant, producer, id, payload, key, type, time, headers });
  if (!isRejected(received)) return { kind: "message", received, why };
  return { kind: "message", received: { ...received, bytes: bodyBytes(delivery.body) }, why };
}

/** A delivery of which no message can be made. */
export function refused(
  delivery: RawDelivery,
  fault: Fault,
  candidate: MessageCandidate = {},
): readonly ReadItem[] {
  const { producer, id, tenant = delivery.tenant } = candidate;
  const received = rejectMessage({
    ...fault,
    identity: { tenant, producer, id },
    key: keyText(candidate.key ?? delivery.key),
    type: typeof candidate.type === "string" ? candidate.type : undefined,
    headers: headerTexts(delivery.headers),
    bytes: bodyBytes(delivery.body),
  });
  return [{ kind: "message", received, why: noWhy }];
}

/**
 * The delivery as its many parts are given it: with its body as bytes, made once, and without headers, which belong to
 * the whole. Otherwise a delivery of many parts would cost its size for each of them.
 */
export const partsOf = (delivery: RawDelivery): RawDelivery & { readonly body: Uint8Array | null } => ({
  ...delivery,
  headers: undefined,
  body: bodyBytes(delivery.body),
});

export const fault = (code: Fault["code"], text: string): Fault => ({ code, text });

/** Tells a fault from the text, or the nothing, that stands in its place otherwise. */
export const isFault = (value: string | undefined | Fault): value is Fault => typeof value === "object";

const bodyBytes = (body: RawDelivery["body"]): Uint8Array | null =>
  typeof body === "string" ? storeText(body) : body;
