import { SaxesParser } from "saxes";
import type { SaxesTagNS } from "saxes";
import type { Fault } from "../check-message.ts";
import { showValue } from "../show-value.ts";
import { decodeUtf8, withoutByteOrderMark } from "../utf8.ts";

/** A party's or another name with the scheme it belongs to. */
export interface TypedName {
  readonly type: string;
  readonly value: string;
}

/** What the header of an ebMS3 message says; texts without the white space round them. */
export interface UserMessage {
  readonly messageId: string | undefined;
  readonly refToMessageId: string | undefined;
  readonly timestamp: string | undefined;
  readonly from: readonly TypedName[];
  readonly to: readonly TypedName[];
  readonly agreement: string | undefined;
  readonly service: TypedName | undefined;
  readonly action: string | undefined;
  readonly conversationId: string | undefined;
  readonly properties: readonly TypedName[];
  readonly parts: readonly PartInfo[];
  /** What stands in the SOAP body, as it is written; `undefined` for nothing. */
  readonly body: string | undefined;
}

export interface PartInfo {
  readonly href: string | undefined;
  readonly properties: readonly TypedName[];
}

const eb = "http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/";
const soaps = ["http://www.w3.org/2003/05/soap-envelope", "http://schemas.xmlsoap.org/soap/envelope/"];
const maxDepth = 200;

/**
 * The user message of a SOAP envelope, `"signal"` for an envelope that carries only a signal (a receipt, an error or a pull
 * request), or a fault. A DOCTYPE, which SOAP forbids, is refused before anything is parsed; entities are never expanded.
 */
export function readEnvelope(bytes: Uint8Array): UserMessage | "signal" | Fault {
  const decoded = decodeXml(bytes);
  if (decoded === undefined)
    return { code: "malformed", text: "The AS4 envelope is neither UTF-8 nor UTF-16." };
  const text = withoutByteOrderMark(decoded);
  if (hasDoctype(text)) return unsafe;
  try {
    return collect(text);
  } catch (error) {
    if (error instanceof Stop) return error.fault;
    return { code: "malformed", text: `The AS4 envelope is no XML: ${showValue(String(error), 120)}.` };
  }
}

const unsafe: Fault = {
  code: "unsafe-xml",
  text: "The document has a DOCTYPE, which SOAP forbids; it was not parsed.",
};

class Stop {
  readonly fault: Fault;
  constructor(fault: Fault) {
    this.fault = fault;
  }
}

const malformed = (reason: string): Stop =>
  new Stop({ code: "malformed", text: `The AS4 envelope cannot be read: ${reason}.` });

/** The text of an XML document in UTF-8 or UTF-16; `undefined` for anything else. */
export function decodeXml(bytes: Uint8Array): string | undefined {
  const utf16 =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? "utf-16le"
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? "utf-16be"
        : undefined;
  if (utf16 === undefined) return decodeUtf8(bytes);
  try {
    return new TextDecoder(utf16, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Whether a DOCTYPE stands before the first element, past any declaration, comment or processing instruction. */
function hasDoctype(text: string): boolean {
  let at = 0;
  for (;;) {
    while (/[ \t\r\n]/.test(text.charAt(at))) at++;
    const end = text.startsWith("<!--", at) ? "-->" : text.startsWith("<?", at) ? "?>" : undefined;
    if (end === undefined) return text.slice(at, at + 9).toUpperCase() === "<!DOCTYPE";
    const close = text.indexOf(end, at + 2);
    if (close === -1) return false;
    at = close + end.length;
  }
}

interface Draft {
  messageId: string[];
  refToMessageId: string[];
  timestamp: string[];
  conversationId: string[];
  action: string[];
  agreement: string[];
  service: TypedName[];
  from: TypedName[];
  to: TypedName[];
  properties: TypedName[];
  parts: { href: string | undefined; properties: TypedName[] }[];
}

function collect(text: string): UserMessage | "signal" {
  const parser = new SaxesParser({ xmlns: true });
  const path: string[] = [];
  let value = "";
  let users = 0;
  let signals = 0;
  let bodyStart = -1;
  let body: string | undefined;
  const draft: Draft = {
    messageId: [],
    refToMessageId: [],
    timestamp: [],
    conversationId: [],
    action: [],
    agreement: [],
    service: [],
    from: [],
    to: [],
    properties: [],
    parts: [],
  };
  parser.on("doctype", () => {
    throw new Stop(unsafe);
  });
  parser.on("error", (error) => {
    throw malformed(showValue(error.message, 160));
  });
  parser.on("opentag", (tag) => {
    if (leaves.has(placeOf(path))) throw malformed("it has an element where only text may be");
    path.push(nameOf(tag));
    if (path.length > maxDepth) throw malformed(`it nests over ${maxDepth} levels`);
    value = "";
    const place = placeOf(path);
    if (place === userMessage) users++;
    else if (place === `${messaging}/eb:SignalMessage`) signals++;
    else if (place === `${userMessage}/eb:PayloadInfo/eb:PartInfo`) {
      draft.parts.push({ href: tag.attributes["href"]?.value, properties: [] });
    } else if (place === "soap:Envelope/soap:Body" && !tag.isSelfClosing) bodyStart = parser.position;
  });
  const addText = (part: string): void => {
    // Only what is inside the header is kept.
    if (bodyStart === -1) value += part;
  };
  parser.on("text", addText);
  parser.on("cdata", addText);
  parser.on("closetag", (tag) => {
    const place = placeOf(path);
    path.pop();
    if (place === "soap:Envelope/soap:Body") {
      if (bodyStart !== -1) {
        const inner = text.slice(bodyStart, text.lastIndexOf("</", parser.position - 1));
        if (/[^ \t\r\n]/.test(inner)) body ??= inner;
      }
      bodyStart = -1;
    } else if (place.startsWith(`${userMessage}/`))
      take(draft, place.slice(userMessage.length + 1), tag, trimXml(value));
    value = "";
  });
  parser.write(text).close();

  if (users === 0 && signals > 0) return "signal";
  if (users !== 1)
    throw malformed(users === 0 ? "it has no eb:UserMessage" : "it has several eb:UserMessages");
  const one = (
    name: "messageId" | "refToMessageId" | "timestamp" | "conversationId" | "action" | "agreement",
  ): string | undefined => {
    if (draft[name].length > 1) throw malformed(`it has several values of ${name}`);
    return draft[name][0];
  };
  return {
    messageId: one("messageId"),
    refToMessageId: one("refToMessageId"),
    timestamp: one("timestamp"),
    from: draft.from,
    to: draft.to,
    agreement: one("agreement"),
    service: draft.service[0],
    action: one("action"),
    conversationId: one("conversationId"),
    properties: draft.properties,
    parts: draft.parts,
    body,
  };
}

const messaging = "soap:Envelope/soap:Header/eb:Messaging";
const userMessage = `${messaging}/eb:UserMessage`;

// All that is read lies no deeper; naming every place would take time that grows with the depth.
const maxPlaces = 8;
const placeOf = (path: readonly string[]): string => (path.length > maxPlaces ? "" : path.join("/"));

const leaves: ReadonlySet<string> = new Set(
  [
    "MessageInfo/eb:MessageId",
    "MessageInfo/eb:RefToMessageId",
    "MessageInfo/eb:Timestamp",
    "PartyInfo/eb:From/eb:PartyId",
    "PartyInfo/eb:To/eb:PartyId",
    "CollaborationInfo/eb:AgreementRef",
    "CollaborationInfo/eb:Service",
    "CollaborationInfo/eb:Action",
    "CollaborationInfo/eb:ConversationId",
    "MessageProperties/eb:Property",
    "PayloadInfo/eb:PartInfo/eb:PartProperties/eb:Property",
  ].map((place) => `${userMessage}/eb:${place}`),
);

/** An element's name with a fixed prefix for the two namespaces that count, whatever prefix the sender chose. */
function nameOf({ uri, local }: SaxesTagNS): string {
  const prefix = uri === eb ? "eb:" : soaps.includes(uri) ? "soap:" : undefined;
  return prefix === undefined || local.length > 64 ? "other" : prefix + local;
}

const trimXml = (text: string): string => {
  let start = 0;
  let end = text.length;
  const isSpace = (at: number): boolean => " \t\r\n".includes(text.charAt(at));
  while (start < end && isSpace(start)) start++;
  while (end > start && isSpace(end - 1)) end--;
  return text.slice(start, end);
};

function take(draft: Draft, place: string, tag: SaxesTagNS, value: string): void {
  const attribute = (name: string): string => tag.attributes[name]?.value ?? "";
  switch (place) {
    case "eb:MessageInfo/eb:MessageId":
      return void draft.messageId.push(value);
    case "eb:MessageInfo/eb:RefToMessageId":
      return void draft.refToMessageId.push(value);
    case "eb:MessageInfo/eb:Timestamp":
      return void draft.timestamp.push(value);
    case "eb:PartyInfo/eb:From/eb:PartyId":
      return void draft.from.push({ type: attribute("type"), value });
    case "eb:PartyInfo/eb:To/eb:PartyId":
      return void draft.to.push({ type: attribute("type"), value });
    case "eb:CollaborationInfo/eb:AgreementRef":
      return void draft.agreement.push(value);
    case "eb:CollaborationInfo/eb:Service":
      return void draft.service.push({ type: attribute("type"), value });
    case "eb:CollaborationInfo/eb:Action":
      return void draft.action.push(value);
    case "eb:CollaborationInfo/eb:ConversationId":
      return void draft.conversationId.push(value);
    case "eb:MessageProperties/eb:Property":
      return void draft.properties.push({ type: attribute("name"), value });
    case "eb:PayloadInfo/eb:PartInfo/eb:PartProperties/eb:Property":
      return void draft.parts.at(-1)?.properties.push({ type: attribute("name"), value });
  }
}
