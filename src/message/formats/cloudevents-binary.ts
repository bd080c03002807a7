import type { Fault, MessageCandidate } from "../check-message.ts";
import { parseRfc3339 } from "../rfc3339.ts";
import { showValue } from "../show-value.ts";
import { fault, isFault, readAs, refused } from "./format.ts";
import type { RawDelivery, ReadItem, Why } from "./format.ts";
import { eachHeader, headerTexts, keyText, setText, valueText } from "./header-value.ts";

const why = (key: string): Why => ({
  identity: "the source and id attributes, which CloudEvents makes unique together",
  payload: "the body: in binary mode it is the event's data and nothing else",
  key,
  time: "the time attribute",
});
const keyFromAttribute = why("the partitionkey attribute");
const keyFromBroker = why("the broker's key, as there is no partitionkey attribute");
const keyFromSubject = why(
  "the subject attribute, as there is neither a partitionkey attribute nor a broker's key",
);

/** The length of the prefix that makes a header a CloudEvents attribute: HTTP and NATS, Kafka, AMQP; 0 for none. */
function prefixLength(name: string): number {
  const c = name.charCodeAt(0);
  if (c !== 0x63 && c !== 0x43) return 0;
  if (name.startsWith("ce_") || name.startsWith("ce-")) return 3;
  if (name.startsWith("cloudEvents:") || name.startsWith("cloudEvents_")) return 12;
  return /^ce[-_]/i.test(name) ? 3 : 0;
}

/**
 * Reads a CloudEvent in binary mode: attributes in headers, the body is the data. `undefined` if no header is an
 * attribute's, so that another mode or format can be tried.
 */
export function readBinaryCloudEvent(delivery: RawDelivery): readonly ReadItem[] | undefined {
  const attributes: Attributes = { count: 0, fault: undefined };
  const headers: Record<string, string> = {};
  let others = false;
  eachHeader(delivery.headers, (name, value) => {
    const length = prefixLength(name);
    if (length === 0) {
      others = true;
      return;
    }
    const attribute = name.slice(length).toLowerCase();
    attributes.count++;
    const text = attributeText(value, name, name.charCodeAt(2) === 0x2d);
    if (isFault(text)) attributes.fault ??= text;
    else if (text !== undefined) {
      if (isKnown(attribute)) {
        const before = attributes[attribute];
        if (before !== undefined && before !== text) attributes.fault ??= differs(name);
        attributes[attribute] = text;
      }
      setText(headers, `ce-${attribute}`, text);
    }
  });
  if (attributes.count === 0) return undefined;
  const { id, source, type, specversion, subject, partitionkey, time } = attributes;
  const identity: MessageCandidate = { producer: source, id, type };
  if (attributes.fault !== undefined) return refused(delivery, attributes.fault, identity);
  const malformed = (reason: string): readonly ReadItem[] =>
    refused(delivery, fault("malformed", `The CloudEvent cannot be read: ${reason}.`), identity);
  // A missing id or source is worse than what else may be wrong, and is said first.
  if (id && source) {
    if (specversion !== "1.0")
      return malformed(`its specversion must be "1.0", not ${showValue(specversion)}`);
    if (!type) return malformed("it has no type");
  }
  const date = time === undefined ? undefined : parseRfc3339(time);
  if (time !== undefined && date === undefined && id && source) {
    return malformed(`its time ${showValue(time)} is no RFC 3339 timestamp`);
  }
  const brokerKey = keyText(delivery.key);
  return [
    readAs(
      delivery,
      {
        ...identity,
        payload: delivery.body,
        key: partitionkey ?? brokerKey ?? subject,
        time: date,
        headers: others ? { ...headerTexts(withoutAttributes(delivery.headers)), ...headers } : headers,
      },
      partitionkey !== undefined
        ? keyFromAttribute
        : brokerKey !== undefined
          ? keyFromBroker
          : keyFromSubject,
    ),
  ];
}

interface Attributes {
  count: number;
  fault: Fault | undefined;
  id?: string;
  source?: string;
  type?: string;
  specversion?: string;
  subject?: string;
  partitionkey?: string;
  time?: string;
}

const known = ["id", "source", "type", "specversion", "subject", "partitionkey", "time"] as const;
const isKnown = (name: string): name is (typeof known)[number] => (known as readonly string[]).includes(name);

const differs = (name: string): Fault =>
  fault("invalid-identity", `The header ${showValue(name)} has several values that differ.`);

/** An attribute's value. Sent more than once, all must be equal. AMQP may carry a time as a Date. */
function attributeText(value: unknown, name: string, encoded: boolean): string | undefined | Fault {
  if (Array.isArray(value)) {
    let all: string | undefined;
    for (const item of value) {
      const text = attributeText(item, name, encoded);
      if (isFault(text)) return text;
      if (all !== undefined && text !== undefined && all !== text) return differs(name);
      all ??= text;
    }
    return all;
  }
  if (value === undefined || value === null) return undefined;
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString();
  const text = valueText(value, name);
  return encoded && typeof text === "string" ? decodeHttpValue(text) : text;
}

/** HTTP and NATS carry attribute values percent-encoded and perhaps quoted. A value that is not well encoded is taken as it is. */
function decodeHttpValue(text: string): string {
  const quoted = text.length >= 2 && text.startsWith('"') && text.endsWith('"');
  const inner = quoted ? text.slice(1, -1).replace(/\\(.)/g, "$1") : text;
  try {
    return inner.includes("%") ? decodeURIComponent(inner) : inner;
  } catch {
    return inner;
  }
}

function withoutAttributes(headers: unknown): [string, unknown][] {
  const rest: [string, unknown][] = [];
  eachHeader(headers, (name, value) => {
    if (prefixLength(name) === 0) rest.push([name, value]);
  });
  return rest;
}
