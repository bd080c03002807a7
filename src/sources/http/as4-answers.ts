import type { Answer } from "../../inbox/answers.ts";
import type { Inbox } from "../../inbox/create-inbox.ts";
import { openAs4 } from "../../message/formats/as4.ts";
import { decodeXml } from "../../message/formats/as4-envelope.ts";
import type { RawDelivery } from "../../message/formats/format.ts";
import type { Message } from "../../message/message.ts";
import { withoutByteOrderMark } from "../../message/utf8.ts";
import { responseOf } from "./answer.ts";
import { as4ContentType, conflictSignal, receiptSignal, type SignalParts } from "./as4-signal.ts";
import { copyUserMessage } from "./as4-user-message.ts";
import type { Answered } from "./keep-answer.ts";
import type { As4Answers } from "./options.ts";
import { outcomeResponse } from "./outcome-response.ts";
import type { SignedRequest } from "./signature-schemes.ts";

/** What is needed to answer one user message. */
export interface As4Exchange {
  readonly message: Message;
  readonly delivery: RawDelivery;
  readonly signed: SignedRequest;
  readonly options: As4Answers;
  readonly now: () => number;
}

/** The receipt of a user message, as it is kept. */
export const receiptOf = (exchange: As4Exchange): Promise<Answer> => {
  const opened = openAs4(exchange.delivery, exchange.delivery.body as Uint8Array);
  const envelope = typeof opened === "string" ? undefined : decodeXml(opened.envelope);
  // The format has read this envelope; it can be read again.
  if (envelope === undefined) throw new Error("The envelope of an AS4 message cannot be read a second time.");
  return signalAnswer(
    exchange,
    receiptSignal(partsOf(exchange), copyUserMessage(withoutByteOrderMark(envelope))),
  );
};

/**
 * Answers a user message. A receipt says that the message is here for good: applied, or in quarantine, where a person
 * decides. A duplicate gets the receipt of the first, byte for byte. A message that failed gets none: its sender sends
 * it again.
 */
export async function as4Response<Data>(
  inbox: Inbox<Data>,
  exchange: As4Exchange,
  { processed, answer }: Answered,
): Promise<Response> {
  if (processed.settle === "retry") return outcomeResponse(processed);
  if (processed.outcome === "conflict") {
    return responseOf(await signalAnswer(exchange, conflictSignal(partsOf(exchange))));
  }
  if (answer !== undefined) return responseOf(answer);
  const kept = await inbox.answers.find(exchange.message);
  // Taken by another way than this, or set aside: it gets its receipt now, and the same one from now on.
  return responseOf(kept ?? (await inbox.answers.keepNow(exchange.message, await receiptOf(exchange))));
}

const partsOf = ({ message, options, now }: As4Exchange): SignalParts => ({
  refToMessageId: message.id,
  domain: options.domain ?? "receiver.invalid",
  now: now(),
});

async function signalAnswer({ options, signed }: As4Exchange, envelope: string): Promise<Answer> {
  const { contentType, body } =
    options.sign === undefined
      ? { contentType: as4ContentType, body: Buffer.from(envelope) }
      : await options.sign(envelope, signed);
  return { request: "", status: 200, headers: { "content-type": contentType }, body };
}
