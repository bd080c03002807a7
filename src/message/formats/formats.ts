import { InboxError } from "../../errors.ts";
import { showValue } from "../show-value.ts";
import { as4 } from "./as4.ts";
import type { As4Options } from "./as4.ts";
import { cloudevents } from "./cloudevents-format.ts";
import { debeziumChange } from "./debezium-change.ts";
import type { DebeziumChangeOptions } from "./debezium-change.ts";
import { debeziumOutbox } from "./debezium-outbox.ts";
import type { DebeziumOutboxOptions } from "./debezium-outbox.ts";
import { edifact } from "./edifact.ts";
import type { EdifactOptions } from "./edifact.ts";
import { eventbridge } from "./eventbridge.ts";
import type { Format } from "./format.ts";
import { header, nats } from "./header.ts";
import type { HeaderOptions } from "./header.ts";
import { json } from "./json.ts";
import type { JsonOptions } from "./json.ts";
import type { ProducerOption } from "./producer.ts";
import { rabbitmq } from "./rabbitmq.ts";
import { s3 } from "./s3.ts";
import { sqs } from "./sqs.ts";
import type { SqsOptions } from "./sqs.ts";
import { stripe } from "./stripe.ts";
import { github, shopify, standardWebhooks } from "./webhook-headers.ts";
import { x12 } from "./x12.ts";
import type { X12Options } from "./x12.ts";

/** The formats that can be named, and what each may be told. */
export interface FormatOptions {
  readonly as4: As4Options;
  readonly cloudevents: Record<string, never>;
  readonly "debezium-change": DebeziumChangeOptions;
  readonly "debezium-outbox": DebeziumOutboxOptions;
  readonly edifact: EdifactOptions;
  readonly eventbridge: Record<string, never>;
  readonly github: ProducerOption;
  readonly header: HeaderOptions;
  readonly json: JsonOptions;
  readonly nats: ProducerOption;
  readonly rabbitmq: ProducerOption;
  readonly s3: Record<string, never>;
  readonly shopify: ProducerOption;
  readonly sqs: SqsOptions;
  readonly "standard-webhooks": ProducerOption;
  readonly stripe: ProducerOption;
  readonly x12: X12Options;
}

export type FormatName = keyof FormatOptions;

const formats: { readonly [Name in FormatName]: (options: FormatOptions[Name]) => Format } = {
  as4,
  cloudevents,
  "debezium-change": debeziumChange,
  "debezium-outbox": debeziumOutbox,
  edifact,
  eventbridge,
  github,
  header,
  json,
  nats,
  rabbitmq,
  s3,
  shopify,
  sqs,
  "standard-webhooks": standardWebhooks,
  stripe,
  x12,
};

/** The names, in alphabetical order. */
export const formatNames: readonly FormatName[] = Object.keys(formats).sort() as FormatName[];

/**
 * What users write for `identity`: a name (`"cloudevents"`), or a format that is already made (`json({ idPath: "/id" })`,
 * `firstOf(...)`, `custom(...)`).
 */
export type FormatChoice = Exclude<FormatName, "header" | "json"> | Format;

/** The format of a name. Throws `invalid-option` for an unknown name, and for options that break their rules. */
export function formatByName<Name extends FormatName>(name: Name, options?: FormatOptions[Name]): Format {
  if (!Object.hasOwn(formats, name)) {
    throw new InboxError(
      "invalid-option",
      `There is no format ${showValue(name)}. There are: ${formatNames.join(", ")}.`,
    );
  }
  const make = formats[name] as (options: unknown) => Format;
  return make(options ?? {});
}

/** The format that a choice means. Throws `invalid-option`. */
export const toFormat = (choice: FormatChoice): Format =>
  typeof choice === "string" ? formatByName(choice) : choice;
