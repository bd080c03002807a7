import { memberSpans } from "../json-spans.ts";
import { readJson } from "../json-document.ts";
import type { JsonDocument } from "../json-document.ts";
import type { RawDelivery } from "./format.ts";
import type { FormatName } from "./formats.ts";
import { eachHeader } from "./header-value.ts";
import { property } from "./property.ts";
import { snsNotification } from "./sns-envelope.ts";
import { unwrapSchema } from "./debezium-schema.ts";
import { decodeUtf8 } from "../utf8.ts";

/** A format that a delivery looks like, and by what. `idPath`: for `json`, the field that looks like an id. */
export interface Guess {
  readonly name: FormatName;
  readonly because: string;
  readonly idPath?: string;
}

/** What a delivery looks like; `undefined` if like nothing that is known. For people to confirm, never to run on. */
export const guessFormat = (delivery: RawDelivery): Guess | undefined =>
  byBeginning(delivery) ?? byProperties(delivery) ?? byHeaders(delivery) ?? byDocument(delivery);

function byBeginning({ body, headers }: RawDelivery): Guess | undefined {
  const beginning =
    typeof body === "string"
      ? body.slice(0, 2000)
      : Buffer.from(body?.subarray(0, 2000) ?? []).toString("latin1");
  const start = beginning.replace(/^(?:\ufeff|\u00ef\u00bb\u00bf)?\s+/, "");
  if (/^UN[AB]/.test(start)) return { name: "edifact", because: `it begins with ${start.slice(0, 3)}` };
  if (/^ISA[^A-Za-z0-9]/.test(start)) return { name: "x12", because: "it begins with ISA" };
  if (start.startsWith("<")) return { name: "as4", because: "it is XML" };
  if (/^--\S|^(?:MIME-Version|Content-Type):/i.test(start))
    return { name: "as4", because: "it is a MIME message" };
  const types: string[] = [];
  eachHeader(headers, (name, value) => {
    if (name.toLowerCase() === "content-type" && typeof value === "string") types.push(value);
  });
  return types.some((type) => /^multipart\/related/i.test(type))
    ? { name: "as4", because: "its content type is multipart/related" }
    : undefined;
}

const signs: readonly (readonly [RegExp, FormatName])[] = [
  [/^(?:ce[-_]|cloudEvents[:_])/i, "cloudevents"],
  [/^stripe-signature$/i, "stripe"],
  [/^x-github-delivery$/i, "github"],
  [/^x-shopify-webhook-id$/i, "shopify"],
  [/^(?:webhook|svix)-id$/i, "standard-webhooks"],
  [/^nats-msg-id$/i, "nats"],
];

function byHeaders({ headers, channel }: RawDelivery): Guess | undefined {
  const names: string[] = [];
  eachHeader(headers, (name) => void names.push(name));
  for (const [pattern, format] of signs) {
    const name = names.find((candidate) => pattern.test(candidate));
    if (name !== undefined) return { name: format, because: `it has the header ${name.slice(0, 40)}` };
  }
  if (names.includes("eventType") && names.includes("id")) {
    return { name: "debezium-outbox", because: "it has the headers id and eventType" };
  }
  if (channel?.startsWith("outbox.event.") === true)
    return { name: "debezium-outbox", because: "its topic begins with outbox.event." };
  return undefined;
}

function byProperties({ properties, body }: RawDelivery): Guess | undefined {
  if (typeof property(properties, "messageId") === "string")
    return { name: "rabbitmq", because: "it has the property messageId" };
  if (typeof property(properties, "MessageId") !== "string") return undefined;
  const document = readJson(body);
  const inner = typeof document === "string" ? undefined : byJson(document);
  return inner?.name === "s3" || inner?.name === "eventbridge" || inner?.name === "cloudevents"
    ? inner
    : { name: "sqs", because: "it has the field MessageId of an SQS message" };
}

function byDocument({ body }: RawDelivery): Guess | undefined {
  const text = typeof body === "string" ? body : body === null ? undefined : decodeUtf8(body);
  if (text === undefined) return undefined;
  const document = readJson(unwrapSchema(text) ?? text);
  return typeof document === "string" ? undefined : byJson(document);
}

function byJson(document: JsonDocument): Guess | undefined {
  const has = (...tokens: string[]): boolean => document.raw(tokens) !== undefined;
  if (has("specversion") || has("0", "specversion"))
    return { name: "cloudevents", because: "the document has a specversion" };
  if (has("Records", "0", "s3") || document.text(["Event"]) === "s3:TestEvent")
    return { name: "s3", because: "it has S3 records" };
  const sns = snsNotification(document);
  if (sns !== undefined) {
    const inner = readJson(sns.message);
    const isS3 = typeof inner !== "string" && byJson(inner)?.name === "s3";
    return {
      name: isS3 ? "s3" : "sqs",
      because: isS3 ? "an SNS notification of S3 records" : "it is an SNS notification",
    };
  }
  if (has("detail-type")) return { name: "eventbridge", because: "the document has a detail-type" };
  if (has("op") && has("source", "connector"))
    return { name: "debezium-change", because: "the document has op and source.connector" };
  if (document.text(["object"]) === "event" && document.text(["id"])?.startsWith("evt_") === true) {
    return { name: "stripe", because: "the document is an event with an id evt_..." };
  }
  const raw = document.raw([]);
  const members = raw === undefined ? undefined : memberSpans(raw);
  const id = ["id", "eventId", "event_id", "messageId", "message_id"].find(
    (name) => members?.ok === true && members.spans.has(name),
  );
  return id === undefined
    ? undefined
    : { name: "json", because: `the document has the field ${id}`, idPath: `/${id}` };
}
