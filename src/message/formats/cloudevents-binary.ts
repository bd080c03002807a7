import type { Fault } from "../check-message.ts";
import { parseRfc3339 } from "../rfc3339.ts";
import { showValue } from "../show-value.ts";
import { fault, isFault, readAs, refused } from "./format.ts";
import type { RawDelivery, ReadItem, Why } from "./format.ts";
import { eachHeader, keyText, setHeader, setText, valueText } from "./header-value.ts";

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

/** What the name of a header says: the attribute, the header that the message will carry it in, and how values are written. */
interface AttributeName {
  readonly attribute: string;
  readonly header: string;
  readonly encoded: boolean;
}

/** Reads the names of headers, and remembers the first of them: they are the same on every message of a source. */
export type AttributeNames = (name: string) => AttributeName | undefined;

const remembered = 64;

export function createAttributeNames(): AttributeNames {
  const names = new Map<string, AttributeName | undefined>();
  return (name) => {
    const before = names.get(name);
    if (before !== undefined || names.has(name)) return before;
    const read = readName(name);
    if (names.size < remembered && name.length < 100) names.set(name, read);
    return read;
  };
}

/** The prefixes are those of HTTP and NATS, of Kafka, and of AMQP. */
function readName(name: string): AttributeName | undefined {
  const prefix = /^(?:ce[-_]|cloudEvents[:_])/i.exec(name)?.[0];
  if (prefix === undefined) return undefined;
  const attribute = name.slice(prefix.length).toLowerCase();
  return { attribute, header: `ce-${attribute}`, encoded: prefix.endsWith("-") };
}

/**
 * Reads a CloudEvent in binary mode: attributes in headers, the body is the data. `undefined` if no header is an
 * attribute's, so that another mode or format can be tried.
 */
export function readBinaryCloudEvent(
  delivery: RawDelivery,
  names: AttributeNames,
): readonly ReadItem[] | undefined {
  const attributes: Attributes = {
    count: 0,
    fault: undefined,
    id: undefined,
    source: undefined,
    type: undefined,
    specversion: undefined,
    subject: undefined,
    partitionkey: undefined,
    time: undefined,
  };
  const headers: Record<string, string> = {};
  eachHeader(delivery.headers, (name, value) => {
    const known = names(name);
    if (known === undefined) return setHeader(headers, name, value);
    attributes.count++;
    take(attributes, headers, known, value, name);
  });
  if (attributes.count === 0) return undefined;
  const { id, source: producer, type, subject, partitionkey, time } = attributes;
  const date = time === undefined ? undefined : parseRfc3339(time);
  const wrong = attributes.fault ?? faultOf(attributes, date);
  if (wrong !== undefined) return refused(delivery, wrong, { producer, id, type });
  const brokerKey = keyText(delivery.key);
  const key = partitionkey ?? brokerKey ?? subject;
  const why =
    partitionkey !== undefined ? keyFromAttribute : brokerKey !== undefined ? keyFromBroker : keyFromSubject;
  return [readAs(delivery, { producer, id, payload: delivery.body, key, type, time: date, headers }, why)];
}

function take(
  attributes: Attributes,
  headers: Record<string, string>,
  { attribute, header, encoded }: AttributeName,
  value: unknown,
  name: string,
): void {
  // What an extension holds is no reason to reject a message.
  if (!isKnown(attribute)) return setHeader(headers, header, value);
  const text = attributeText(value, name, encoded);
  if (text === undefined) return;
  if (isFault(text)) {
    attributes.fault ??= text;
    return;
  }
  const before = attributes[attribute];
  if (before !== undefined && before !== text) attributes.fault ??= differs(name);
  attributes[attribute] = text;
  setText(headers, header, text);
}

function faultOf(
  { id, source, specversion, type, time }: Attributes,
  date: Date | undefined,
): Fault | undefined {
  // A missing id or source is worse than what else may be wrong, and is found later.
  if (!id || !source) return undefined;
  if (specversion !== "1.0") return malformed(`its specversion must be "1.0", not ${showValue(specversion)}`);
  if (!type) return malformed("it has no type");
  if (time !== undefined && date === undefined) {
    return malformed(`its time ${showValue(time)} is no RFC 3339 timestamp`);
  }
  return undefined;
}

const malformed = (reason: string): Fault => fault("malformed", `The CloudEvent cannot be read: ${reason}.`);

interface Attributes {
  count: number;
  fault: Fault | undefined;
  id: string | undefined;
  source: string | undefined;
  type: string | undefined;
  specversion: string | undefined;
  subject: string | undefined;
  partitionkey: string | undefined;
  time: string | undefined;
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
