import type { RawDelivery } from "../../message/formats/format.ts";
import { isRejected, type Message, type Received } from "../../message/message.ts";
import { tellWarning } from "../../telemetry/tell-warning.ts";
import { createItemReader } from "../read-items.ts";
import { emptyAnswer, isResponse, responseOf } from "./answer.ts";
import { as4Response, receiptOf, type As4Exchange } from "./as4-answers.ts";
import { keyedMessage, type Principal } from "./idempotency-key.ts";
import { processKeeping } from "./keep-answer.ts";
import { keyedResponse, runningResponse, type RunningRequests } from "./keyed-response.ts";
import { receiverSettings, type HttpReceiverOptions } from "./options.ts";
import { combinedResponse, outcomeResponse } from "./outcome-response.ts";
import { problemResponse, Refusal } from "./problem.ts";
import { readBody } from "./read-body.ts";
import type { SignedRequest } from "./signature-schemes.ts";

/** Takes a request and answers it; never rejects. */
export interface HttpReceiver {
  (request: Request): Promise<Response>;
  /** How many messages, or what looked like some, needed no handling, by reason. */
  ignored(): Readonly<Record<string, number>>;
}

/**
 * Receives messages by HTTP: webhooks, CloudEvents, AS4, or requests to an API of your own with an Idempotency-Key. A
 * request is read within its limits, then verified, and only then claimed; the answer tells its sender whether to send it
 * again (docs/http.md has the table). Throws `invalid-option`.
 */
export function httpReceiver<Data>(options: HttpReceiverOptions<Data>): HttpReceiver {
  const { inbox, handler } = options;
  const settings = receiverSettings(options);
  const { keyed, format, maxAnswerBytes } = settings;
  const items = format === undefined ? undefined : createItemReader(format);
  const running: RunningRequests = new Map();

  async function receive(request: Request): Promise<Response> {
    const { methods } = settings;
    if (!methods.includes(request.method)) {
      const headers = { allow: methods.join(", ") };
      throw new Refusal({
        status: 405,
        code: "method-not-allowed",
        title: "This method is not taken.",
        headers,
      });
    }
    const signed: SignedRequest = { headers: request.headers, body: await readBody(request, settings) };
    // Nothing of the body is believed, and nothing in the database touched, before this.
    if (settings.verify !== undefined && (await settings.verify(signed)) !== true) {
      const title = "The request's signature is missing, wrong or too old.";
      throw new Refusal({ status: 401, code: "signature-invalid", title });
    }
    const principal = await principalOf(request, signed);
    const delivery: RawDelivery = {
      body: signed.body,
      headers: [...request.headers].filter(([name]) => !settings.secretHeaders.has(name)),
      channel: new URL(request.url).pathname,
      tenant: principal?.tenant,
    };
    if (keyed) {
      return receiveKeyed(
        request,
        keyedMessage(request.headers.get("idempotency-key"), principal ?? {}, delivery),
      );
    }
    return receiveItems(request, signed, delivery, items!.read(delivery));
  }

  async function principalOf(request: Request, signed: SignedRequest): Promise<Principal | undefined> {
    if (options.principal === undefined) return undefined;
    const principal = await options.principal({ ...signed, request });
    if (principal !== undefined) return principal;
    throw new Refusal({
      status: 401,
      code: "not-authenticated",
      title: "The request's sender is not known.",
    });
  }

  async function receiveKeyed(request: Request, message: Message): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const requestLine = `${request.method} ${pathname}${search}`;
    const mark = inbox.answers.markOf(message, requestLine);
    const early = runningResponse(running, mark);
    if (early !== undefined) return early;
    running.set(mark.digest, mark);
    try {
      const fallback = async () => emptyAnswer(requestLine);
      const keeping = { requestLine, maxAnswerBytes, mark, fallback };
      const answered = await processKeeping(inbox, message, handler, request, keeping);
      return await keyedResponse(inbox, message, mark, requestLine, answered);
    } finally {
      running.delete(mark.digest);
    }
  }

  async function receiveItems(
    request: Request,
    signed: SignedRequest,
    delivery: RawDelivery,
    messages: readonly Received[],
  ): Promise<Response> {
    const [first, second] = messages;
    if (first === undefined) return new Response(null, { status: 204 });
    // An unreadable body is kept for a person only where its sender is known: else anybody could fill the quarantine.
    const refuses = format?.name === "as4" || !settings.knowsSenders;
    const unreadable = messages.find(isRejected);
    if (unreadable !== undefined && refuses) {
      const { code } = unreadable.rejected;
      throw new Refusal({ status: 400, code, title: "The request holds no message that can be taken." });
    }
    if (second !== undefined) {
      const all = await inbox.processBatch(messages, (message, context) =>
        withoutAnswer(handler(message, { ...context, request })),
      );
      return combinedResponse(all);
    }
    if (isRejected(first)) return outcomeResponse(await inbox.process(first, () => undefined));
    if (format?.name === "as4") {
      const exchange: As4Exchange = {
        ...{ message: first, delivery, signed, now: settings.now },
        options: options.as4 ?? {},
      };
      const keeping = { requestLine: "", maxAnswerBytes, fallback: () => receiptOf(exchange) };
      // A user message is answered with its receipt, whatever its handler returns.
      const answered = await processKeeping(
        inbox,
        first,
        (message, context) => withoutAnswer(handler(message, context)),
        request,
        keeping,
      );
      return await as4Response(inbox, exchange, answered);
    }
    const keeping = { requestLine: "", maxAnswerBytes, fallback: async () => undefined };
    const { processed, answer } = await processKeeping(inbox, first, handler, request, keeping);
    const kept = answer ?? (processed.outcome === "duplicate" ? await inbox.answers.find(first) : undefined);
    return kept === undefined ? outcomeResponse(processed) : responseOf(kept);
  }

  const receiver = async (request: Request): Promise<Response> => {
    try {
      return await receive(request);
    } catch (error) {
      if (error instanceof Refusal) return problemResponse(error.problem);
      // Told to the operator, not to the caller. Whatever was committed is found by the retry.
      const text = error instanceof Error ? error.message : String(error);
      tellWarning(`A request could not be answered: ${text}`);
      const title = "The request cannot be answered now.";
      return problemResponse({ status: 503, code: "try-again", title, retryAfterMs: 1_000 });
    }
  };
  return Object.assign(receiver, { ignored: () => items?.ignored() ?? {} });
}

/** What a handler returned, without a response that nobody would be given. */
async function withoutAnswer<Value>(returned: Value): Promise<Exclude<Awaited<Value>, Response> | undefined> {
  const value = await returned;
  return isResponse(value) ? undefined : (value as Exclude<Awaited<Value>, Response>);
}
