import { InboxError } from "../../../errors.ts";
import { showValue } from "../../../message/show-value.ts";
import { isLongerThan } from "../../../message/text-rules.ts";
import type { Effect } from "../../effect.ts";
import { binaryEvent } from "../cloud-event.ts";
import { wireId } from "../wire-id.ts";
import type { OutgoingMessage } from "./publish-channel.ts";

/** AMQP counts the bytes of short texts in one byte. */
const mostShortBytes = 255;
/** Properties and headers go in one frame, which is 128 KiB with every default; a larger one ends the connection. */
const mostHeaderBytes = 100_000;

/**
 * Headers by which the broker routes, or tells what it did itself: passed on from somebody else's message they would send
 * copies elsewhere, or have the receiving side believe what never happened.
 */
const brokers = /^(?:cc|bcc|x-(?:death|first-death|last-death|delivery-count|acquired-count|stream)\b.*)$/i;

/** An effect as a message for `exchange` and `routingKey`. Throws `invalid-effect` if AMQP cannot carry it. */
export function messageOf(effect: Effect, exchange: string, routingKey: string): OutgoingMessage {
  const { attributes, headers: own, contentType } = binaryEvent(effect);
  const headers: [string, string][] = [];
  for (const [name, value] of own) if (!brokers.test(name)) headers.push([name, value]);
  for (const [name, value] of attributes) headers.push([`cloudEvents:${name}`, value]);
  let bytes = 0;
  for (const [name, value] of headers) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 8;
    if (isLongerThan(name, mostShortBytes)) throw tooLong(`the name of the header ${showValue(name)}`);
  }
  if (bytes > mostHeaderBytes) {
    throw new InboxError(
      "invalid-effect",
      `Its headers take ${bytes} bytes, and AMQP has room for ${mostHeaderBytes}.`,
    );
  }
  for (const [what, text] of Object.entries({ exchange, routingKey })) {
    if (typeof text !== "string" || isLongerThan(text, mostShortBytes)) {
      throw tooLong(`${what} ${showValue(text)}`);
    }
  }
  const { payload, type, time } = effect;
  return {
    ...{ exchange, routingKey },
    body: payload === null ? Buffer.alloc(0) : asBuffer(payload),
    messageId: wireId(effect, (id) => !isLongerThan(id, mostShortBytes)),
    contentType:
      contentType === undefined || isLongerThan(contentType, mostShortBytes) ? undefined : contentType,
    type: type === undefined || isLongerThan(type, mostShortBytes) ? undefined : type,
    timestamp: time === undefined || time.getTime() < 0 ? undefined : Math.floor(time.getTime() / 1_000),
    headers: Object.fromEntries(headers),
  };
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const tooLong = (what: string): InboxError =>
  new InboxError("invalid-effect", `AMQP has room for ${mostShortBytes} bytes of text here: ${what}.`);
