import type { RawAttribute, RawMessage } from "./raw-message.ts";

/** A message as Lambda hands it to a function, as far as it is used. */
export interface SqsRecord {
  readonly messageId: string;
  readonly body: string;
  readonly attributes: Readonly<Record<string, string | undefined>>;
  readonly messageAttributes: Readonly<Record<string, SqsRecordAttribute>>;
  /** `arn:aws:sqs:eu-central-1:123456789012:orders`. */
  readonly eventSourceARN: string;
}

export interface SqsRecordAttribute {
  readonly stringValue?: string | undefined;
  /** In base64. */
  readonly binaryValue?: string | undefined;
}

/** What a function gets from an SQS event source mapping: `SQSEvent` of `@types/aws-lambda`. */
export interface SqsEvent {
  readonly Records: readonly SqsRecord[];
}

/** The part of a function's context that is used. */
export interface LambdaContext {
  getRemainingTimeInMillis(): number;
}

/** What Lambda is told: every message that is not named is deleted. */
export interface SqsBatchResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

/** The queue's name, as a source that polls it names it: both take one message for the same. */
export const queueOf = ({ eventSourceARN }: SqsRecord): string =>
  String(eventSourceARN ?? "")
    .split(":")
    .at(-1)!;

/** The message as the SDK would give it. */
export const rawOf = (record: SqsRecord): RawMessage => ({
  MessageId: record.messageId,
  Body: record.body,
  Attributes: record.attributes,
  MessageAttributes: Object.fromEntries(
    Object.entries(record.messageAttributes ?? {}).map(([name, value]) => [name, attributeOf(value)]),
  ),
});

const attributeOf = (value: SqsRecordAttribute | undefined): RawAttribute => ({
  StringValue: value?.stringValue,
  BinaryValue: typeof value?.binaryValue === "string" ? Buffer.from(value.binaryValue, "base64") : undefined,
});
