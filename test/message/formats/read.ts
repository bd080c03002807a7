import assert from "node:assert/strict";
import type { Format, RawDelivery } from "../../../src/message/formats/format.ts";
import { isRejected } from "../../../src/message/message.ts";
import type { Message, RejectedMessage } from "../../../src/message/message.ts";

/** The one message that a delivery gives. */
export function readOne(format: Format, delivery: RawDelivery): Message {
  const all = readAll(format, delivery);
  assert.equal(all.length, 1);
  return all[0]!;
}

/** All the messages that a delivery gives; nothing in it may be rejected. */
export const readAll = (format: Format, delivery: RawDelivery): Message[] =>
  format.read(delivery).flatMap((item) => {
    if (item.kind === "ignored") return [];
    const { received } = item;
    assert.ok(
      !isRejected(received),
      isRejected(received) ? `${received.rejected.code}: ${received.rejected.text}` : "",
    );
    return [received];
  });

/** The one rejected message that a delivery gives. */
export function refuseOne(format: Format, delivery: RawDelivery): RejectedMessage {
  const [item, ...more] = format.read(delivery);
  assert.equal(more.length, 0);
  assert.ok(item?.kind === "message" && isRejected(item.received), JSON.stringify(item));
  return item.received;
}

/** The reason why a delivery is ignored. */
export function ignoreOne(format: Format, delivery: RawDelivery): string {
  const [item, ...more] = format.read(delivery);
  assert.equal(more.length, 0);
  assert.ok(item?.kind === "ignored", JSON.stringify(item));
  return item.reason;
}

/** Turns what `JSON.stringify` made of Buffers back into Buffers. */
export function revive<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  const { type, data } = value as { type?: unknown; data?: unknown };
  if (type === "Buffer" && Array.isArray(data)) return Buffer.from(data as number[]) as Value;
  if (Array.isArray(value)) return value.map(revive) as Value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, revive(part as unknown)]),
  ) as Value;
}
