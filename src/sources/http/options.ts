import { InboxError } from "../../errors.ts";
import type { Inbox } from "../../inbox/create-inbox.ts";
import type { HandlerContext, HandlerReturn } from "../../inbox/handler.ts";
import { toFormat, type FormatChoice } from "../../message/formats/formats.ts";
import type { Format } from "../../message/formats/format.ts";
import type { Message } from "../../message/message.ts";
import type { Principal } from "./idempotency-key.ts";
import type { SignedRequest } from "./signature-schemes.ts";
import { createVerify, type Verify, type VerifyOption } from "./verify.ts";
import { wholeNumber } from "../../whole-number.ts";

export interface RequestContext extends HandlerContext {
  /** The request, for its method, target and headers. Its body has been read: it is the message's payload. */
  readonly request: Request;
}

/**
 * Handles one message of a request. What it returns besides statements and words may be a `Response`: it is kept in the
 * same transaction and given again to every duplicate.
 */
export type RequestHandler<Data = unknown> = (
  message: Message<Data>,
  context: RequestContext,
) => HandlerReturn<Response | void> | Promise<HandlerReturn<Response | void>>;

export interface HttpReceiverOptions<Data = unknown> {
  readonly inbox: Inbox<Data>;
  readonly handler: RequestHandler<Data>;
  /** A format by name (`"stripe"`, `"cloudevents"`, `"as4"`, ...) or made; or `"idempotency-key"` for an API of your own. */
  readonly identity: FormatChoice | "idempotency-key";
  /** How a request proves its sender. Must be given for `stripe`, `github`, `shopify` and `standard-webhooks`. */
  readonly verify?: VerifyOption | undefined;
  /**
   * Who makes the request, from what authenticated it; `undefined`: nobody known, 401. Must be given for
   * `"idempotency-key"`. With other identities its tenant counts.
   */
  readonly principal?:
    | ((
        request: SignedRequest & { readonly request: Request },
      ) => Principal | undefined | Promise<Principal | undefined>)
    | undefined;
  /** Default POST; for `"idempotency-key"` POST and PATCH. */
  readonly methods?: readonly string[] | undefined;
  /** Default 1 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** How long the whole body may take to arrive, in milliseconds. Default 30,000. */
  readonly bodyTimeoutMs?: number | undefined;
  /** The largest answer that is kept, in bytes. Default 256 KiB. */
  readonly maxAnswerBytes?: number | undefined;
  /** Names of headers that are secrets, besides Authorization, Proxy-Authorization, Cookie and X-API-Key: no message carries them. */
  readonly secretHeaders?: readonly string[] | undefined;
  readonly as4?: As4Answers | undefined;
  /** Milliseconds since 1970, for signatures' times and receipts. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
}

/** How AS4 messages are answered. */
export interface As4Answers {
  /** The right side of the receipts' message ids. Default `receiver.invalid`. */
  readonly domain?: string | undefined;
  /** Turns a receipt's or an error's SOAP envelope into what is sent: signs it. What it returns is kept and given again. */
  readonly sign?:
    | ((
        envelope: string,
        request: SignedRequest,
      ) =>
        | { readonly contentType: string; readonly body: Uint8Array }
        | Promise<{ readonly contentType: string; readonly body: Uint8Array }>)
    | undefined;
}

/** The options with their defaults. */
export interface ReceiverSettings {
  readonly keyed: boolean;
  readonly format: Format | undefined;
  readonly verify: Verify | undefined;
  /** Whether requests come from senders that somebody has made sure of. */
  readonly knowsSenders: boolean;
  readonly methods: readonly string[];
  readonly maxBodyBytes: number;
  readonly bodyTimeoutMs: number;
  readonly maxAnswerBytes: number;
  readonly secretHeaders: ReadonlySet<string>;
  readonly now: () => number;
}

const signedFormats = ["stripe", "github", "shopify", "standard-webhooks"];

/** Checks every option; throws `invalid-option`. */
export function receiverSettings<Data>(options: HttpReceiverOptions<Data>): ReceiverSettings {
  const { inbox, handler, identity, verify, principal } = options;
  if (typeof inbox?.process !== "function") throw invalid("inbox must be made by createInbox.");
  if (typeof handler !== "function") throw invalid("handler must be a function that takes one message.");
  const keyed = identity === "idempotency-key";
  const format = keyed ? undefined : toFormat(identity);
  if (keyed && typeof principal !== "function") {
    throw invalid(
      'identity: "idempotency-key" needs principal, which says who makes a request: else one caller could be given the answer of another.',
    );
  }
  if (format !== undefined && signedFormats.includes(format.name) && verify === undefined) {
    throw invalid(
      `identity: "${format.name}" needs verify: whoever sends an id first keeps the genuine message out. verify: false if something in front of the receiver has done it.`,
    );
  }
  // The sender's clock is what a signature's time is compared with: there is no other than this machine's.
  const now = options.now ?? Date.now;
  return {
    ...{ keyed, format, now },
    verify: createVerify(verify, now),
    knowsSenders: verify !== undefined || principal !== undefined,
    methods: (options.methods ?? (keyed ? ["POST", "PATCH"] : ["POST"])).map((method) =>
      method.toUpperCase(),
    ),
    maxBodyBytes: wholeNumber("maxBodyBytes", options.maxBodyBytes, 1_048_576, 1, 1_073_741_824),
    bodyTimeoutMs: wholeNumber("bodyTimeoutMs", options.bodyTimeoutMs, 30_000, 1, 86_400_000),
    maxAnswerBytes: wholeNumber("maxAnswerBytes", options.maxAnswerBytes, 262_144, 0, 67_108_864),
    secretHeaders: new Set(
      ["authorization", "proxy-authorization", "cookie", "x-api-key", ...(options.secretHeaders ?? [])].map(
        (name) => name.toLowerCase(),
      ),
    ),
  };
}

const invalid = (text: string): InboxError => new InboxError("invalid-option", text);
