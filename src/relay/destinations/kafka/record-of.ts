import { InboxError } from "../../../errors.ts";
import { showValue } from "../../../message/show-value.ts";
import type { Effect } from "../../effect.ts";
import { binaryEvent } from "../cloud-event.ts";
import type { KafkaRecord } from "./producer.ts";

/** What a record takes besides its key, value and headers, generously. */
const overheadBytes = 80;

export const isTopic = (topic: unknown): topic is string =>
  typeof topic === "string" && /^[a-zA-Z0-9._-]{1,249}$/.test(topic);

/** An effect as a record of `topic`: a CloudEvent in binary mode, its key the record's. Throws `invalid-effect`. */
export function recordOf(effect: Effect, topic: string): KafkaRecord {
  if (!isTopic(topic)) {
    throw new InboxError("invalid-effect", `${showValue(topic)} is no name of a topic.`);
  }
  const event = binaryEvent(effect);
  const headers: [string, string][] = [...event.headers];
  for (const [name, value] of event.attributes) headers.push([`ce_${name}`, value]);
  if (event.contentType !== undefined) headers.push(["content-type", event.contentType]);
  let bytes = overheadBytes;
  for (const [name, value] of headers) bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 4;
  const key = effect.key === undefined ? null : Buffer.from(effect.key);
  const { payload } = effect;
  const value = payload === null ? null : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  bytes += (key?.byteLength ?? 0) + (value?.byteLength ?? 0);
  return { topic, key, value, headers: Object.fromEntries(headers), bytes };
}
