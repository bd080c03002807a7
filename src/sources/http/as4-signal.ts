import { randomUUID } from "node:crypto";
import { escapeAttribute, escapeText } from "./as4-user-message.ts";

const soap = "http://www.w3.org/2003/05/soap-envelope";
const eb = "http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/";

export const as4ContentType = "application/soap+xml; charset=UTF-8";

export interface SignalParts {
  /** `eb:MessageId` of the message it answers. */
  readonly refToMessageId: string;
  /** The right side of the signal's own id. */
  readonly domain: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/**
 * A receipt (ebMS 3.0 core 5.2.3.3; AS4 profile 5.1.8): for a message that is not signed its content is a copy of the
 * eb:UserMessage that is answered.
 */
export const receiptSignal = (parts: SignalParts, userMessage: string): string =>
  signal(parts, `<eb:Receipt>${userMessage}</eb:Receipt>`);

/** The error that says that a message id was used before for another message (EBMS:0003, ebMS 3.0 core 6.7). */
export const conflictSignal = (parts: SignalParts): string =>
  signal(
    parts,
    `<eb:Error category="Content" errorCode="EBMS:0003" origin="ebMS" severity="failure" shortDescription="ValueInconsistent"` +
      ` refToMessageInError="${escapeAttribute(parts.refToMessageId)}">` +
      `<eb:Description xml:lang="en">This eb:MessageId was used before for a message with another content.</eb:Description></eb:Error>`,
  );

const signal = ({ refToMessageId, domain, now }: SignalParts, content: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n` +
  `<S12:Envelope xmlns:S12="${soap}" xmlns:eb="${eb}"><S12:Header><eb:Messaging S12:mustUnderstand="true"><eb:SignalMessage>` +
  `<eb:MessageInfo><eb:Timestamp>${new Date(now).toISOString()}</eb:Timestamp>` +
  `<eb:MessageId>${randomUUID()}@${escapeText(domain)}</eb:MessageId>` +
  `<eb:RefToMessageId>${escapeText(refToMessageId)}</eb:RefToMessageId></eb:MessageInfo>` +
  `${content}</eb:SignalMessage></eb:Messaging></S12:Header><S12:Body/></S12:Envelope>`;
