import { isRejected } from "../message.ts";
import { itemSpans } from "../json-spans.ts";
import { decodeUtf8, withoutByteOrderMark } from "../utf8.ts";
import { readCloudEvent } from "./cloudevents.ts";
import { createAttributeNames, readBinaryCloudEvent } from "./cloudevents-binary.ts";
import { fault, refused } from "./format.ts";
import type { Format, RawDelivery, ReadItem, Why } from "./format.ts";
import { headerValue, keyText } from "./header-value.ts";
import { parseMediaType } from "./media-type.ts";

const why: Why = {
  identity: "the source and id attributes, which CloudEvents makes unique together",
  payload: "the event's data alone, so that a resend with a fresh traceparent or time is the same payload",
  key: "the partitionkey attribute, else the broker's key, else the subject attribute",
  time: "the time attribute",
};

/**
 * CloudEvents 1.0 over HTTP, Kafka, AMQP, NATS or from files. The mode is the content type's: structured
 * (`application/cloudevents+json`), batch (`application/cloudevents-batch+json`, one message an event), else binary if a
 * header is an attribute's. Without any sign, a body that is a JSON object is read as a structured event.
 */
export function cloudevents(): Format {
  const names = createAttributeNames();
  return {
    name: "cloudevents",
    fingerprint: { by: "bytes" },
    read(delivery) {
      const mode = contentMode(delivery);
      if (mode === "undeclared") return readBinaryCloudEvent(delivery, names) ?? readUndeclared(delivery);
      if (mode === "other") {
        const text = "Of the CloudEvents event formats only JSON is read: the content type names another.";
        return refused(delivery, fault("malformed", text));
      }
      if (delivery.body === null) {
        return refused(delivery, fault("malformed", "The CloudEvent cannot be read: there is no body."));
      }
      return mode === "batch" ? readBatch(delivery) : [readStructured(delivery, delivery.body)];
    },
  };
}

type Mode = "structured" | "batch" | "other" | "undeclared";

function contentMode({ headers, properties }: RawDelivery): Mode {
  const named = (properties as { contentType?: unknown } | null | undefined)?.contentType;
  const header = headerValue(headers, "content-type");
  const contentType = typeof header === "string" ? header : typeof named === "string" ? named : "";
  if (!/^\s*application\/cloudevents/i.test(contentType)) return "undeclared";
  const { type } = parseMediaType(contentType);
  if (type === "application/cloudevents+json" || type === "application/cloudevents") return "structured";
  return type === "application/cloudevents-batch+json" ? "batch" : "other";
}

function readStructured(delivery: RawDelivery, document: RawDelivery["body"]): ReadItem {
  const brokerKey = keyText(delivery.key);
  const received = readCloudEvent(document ?? "", { tenant: delivery.tenant, brokerKey });
  return { kind: "message", received, why };
}

function readBatch(delivery: RawDelivery): readonly ReadItem[] {
  const malformed = (reason: string): readonly ReadItem[] =>
    refused(delivery, fault("malformed", `The batch of CloudEvents cannot be read: ${reason}.`));
  const { body } = delivery;
  const decoded = typeof body === "string" ? body : decodeUtf8(body ?? new Uint8Array());
  if (decoded === undefined) return malformed("it is no UTF-8");
  const text = withoutByteOrderMark(decoded);
  const items = itemSpans(text);
  if (!items.ok) return malformed(items.reason);
  try {
    JSON.parse(text);
  } catch {
    return malformed("it is no JSON");
  }
  if (items.spans.length === 0) return [{ kind: "ignored", reason: "a batch without events" }];
  return items.spans.map(({ start, end }) => readStructured(delivery, text.slice(start, end)));
}

function readUndeclared(delivery: RawDelivery): readonly ReadItem[] {
  const { body } = delivery;
  const text = typeof body === "string" ? body : body === null ? undefined : decodeUtf8(body);
  if (text !== undefined && text.includes('"specversion"')) {
    return /^\ufeff?\s*\[/.test(text) ? readBatch(delivery) : [readStructured(delivery, body)];
  }
  const item = text === undefined ? undefined : readStructured(delivery, text);
  if (item?.kind === "message" && !isRejected(item.received)) return [item];
  return refused(
    delivery,
    fault(
      "no-identity",
      "The delivery is no CloudEvent: no header is an attribute's, and the body has no specversion.",
    ),
  );
}
