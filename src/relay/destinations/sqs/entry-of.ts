import { hash } from "node:crypto";
import { InboxError } from "../../../errors.ts";
import { showValue } from "../../../message/show-value.ts";
import { decodeUtf8 } from "../../../message/utf8.ts";
import type { Effect } from "../../effect.ts";
import { binaryEvent, percentEncoded } from "../cloud-event.ts";
import { digestId } from "../wire-id.ts";

/** A message as `SendMessageBatch` takes it, without its place in the batch. */
export interface SqsEntry {
  readonly MessageBody: string;
  readonly MessageAttributes: Readonly<
    Record<string, { readonly DataType: "String"; readonly StringValue: string }>
  >;
  readonly MessageGroupId?: string;
  readonly MessageDeduplicationId?: string;
}

export interface SizedEntry {
  readonly entry: SqsEntry;
  /** What SQS counts: the body, and names, types and values of attributes. */
  readonly bytes: number;
}

/** The most that any queue takes; many take less, and say so themselves. */
const mostBytes = 1_048_576;
const mostAttributes = 10;
const attributeName = /^(?!aws\.|amazon\.)(?!\.)(?!.*\.\.)[a-z0-9_.-]{1,256}(?<!\.)$/i;
const groupId = /^[\x21-\x7e]{1,128}$/;
// What XML 1.0 has no way to write.
const notWritable = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/;

/**
 * An effect as a message: a CloudEvent in binary mode, its attributes in message attributes. In a FIFO queue its key is the
 * group and its digest the deduplication id, which SQS compares in the whole queue without looking at the message. Throws
 * `invalid-effect` if SQS cannot carry it: it takes text only, and ten attributes.
 */
export function entryOf(effect: Effect, fifo: boolean): SizedEntry {
  const body = effect.payload === null ? "" : decodeUtf8(effect.payload);
  if (body === undefined || notWritable.test(body)) {
    throw cannot("SQS carries text only, and the payload is no UTF-8 or holds control characters");
  }
  if (body === "") throw cannot("SQS carries no empty body");
  const { attributes, headers, contentType } = binaryEvent(effect);
  const texts = new Map<string, string>();
  for (const [name, value] of headers) if (attributeName.test(name)) texts.set(name, value);
  for (const [name, value] of attributes) texts.set(`ce-${name}`, percentEncoded(value));
  if (contentType !== undefined) texts.set("content-type", contentType);
  const MessageAttributes: Record<string, { DataType: "String"; StringValue: string }> = {};
  let bytes = Buffer.byteLength(body);
  for (const [name, text] of texts) {
    const StringValue = notWritable.test(text) ? percentEncoded(text) : text;
    if (StringValue === "") continue;
    MessageAttributes[name] = { DataType: "String", StringValue };
    bytes += name.length + "String".length + Buffer.byteLength(StringValue);
  }
  const count = Object.keys(MessageAttributes).length;
  if (count > mostAttributes) {
    throw cannot(
      `SQS carries ${mostAttributes} attributes, and it has ${count}: ${showValue(Object.keys(MessageAttributes).join(", "))}`,
    );
  }
  if (bytes > mostBytes) {
    throw cannot(`SQS carries at most ${mostBytes} bytes, and with its attributes it has ${bytes}`);
  }
  if (!fifo) return { entry: { MessageBody: body, MessageAttributes }, bytes };
  const dedup = digestId(effect);
  return {
    entry: {
      ...{ MessageBody: body, MessageAttributes, MessageDeduplicationId: dedup },
      MessageGroupId: effect.key === undefined ? dedup : groupOf(effect.key),
    },
    bytes,
  };
}

/** SQS takes few characters for a group; equal keys stay equal and different ones different. */
const groupOf = (key: string): string =>
  groupId.test(key) && !key.startsWith("sha256:") ? key : `sha256:${hash("sha256", key, "hex")}`;

const cannot = (why: string): InboxError => new InboxError("invalid-effect", `${why}.`);
