import type { Answer, RequestMark } from "../../inbox/answers.ts";
import type { Inbox } from "../../inbox/create-inbox.ts";
import { statementsOf, type MessageHandler } from "../../inbox/handler.ts";
import type { Processed } from "../../inbox/outcome.ts";
import type { Message } from "../../message/message.ts";
import { answerOf, isResponse } from "./answer.ts";
import type { RequestHandler } from "./options.ts";

/** What is kept with the effect of one message. */
export interface Keeping {
  readonly requestLine: string;
  readonly maxAnswerBytes: number;
  /** Shows the request to other processes while it runs. */
  readonly mark?: RequestMark | undefined;
  /** The answer where the handler gives none; `undefined`: none is kept. */
  readonly fallback: () => Promise<Answer | undefined>;
}

/** A message's outcome, with its answer where this very call applied it and one was kept. */
export interface Answered {
  readonly processed: Processed;
  readonly answer: Answer | undefined;
}

/**
 * Processes one message and keeps its answer in the transaction that applies it: dying after the commit, the retry finds
 * both; dying before it, neither.
 */
export async function processKeeping<Data>(
  inbox: Inbox<Data>,
  message: Message,
  handler: RequestHandler<Data>,
  request: Request,
  { requestLine, maxAnswerBytes, mark, fallback }: Keeping,
): Promise<Answered> {
  let answer: Answer | undefined;
  const keeping: MessageHandler<Data> = async (given, context) => {
    const { tx } = context;
    const held = mark === undefined ? undefined : tx.query(inbox.answers.hold(mark));
    const value = await handler(given, { ...context, request });
    await held;
    const statements = statementsOf(value);
    const returned = isResponse(value) ? await answerOf(value, requestLine, maxAnswerBytes) : undefined;
    // A word says that nothing is to be committed.
    if (returned === undefined && statements === undefined && value !== undefined && value !== null)
      return value;
    answer = returned ?? (await fallback());
    if (answer === undefined) return value;
    const keep = inbox.answers.keep(message, answer);
    if (statements !== undefined) return [...statements, keep];
    await tx.query(keep);
    return undefined;
  };
  const processed = await inbox.process(message, keeping);
  return { processed, answer: processed.outcome === "applied" ? answer : undefined };
}
