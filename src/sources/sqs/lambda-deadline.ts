import { retryIn, type BatchHandler, type HandlerContext, type MessageHandler } from "../../inbox/handler.ts";

/**
 * The handler, which answers that it is to run again as soon as `time` is over: its transaction is rolled back then, as
 * a function that has answered is frozen, with whatever it has open, locks included.
 */
export function within<Data>(
  handler: MessageHandler<Data> | BatchHandler<Data>,
  time: AbortSignal,
): MessageHandler<Data> | BatchHandler<Data> {
  const over = new Promise<unknown>((resolve) => {
    time.addEventListener("abort", () => resolve(retryIn(0)), { once: true });
  });
  const run = <Subject>(
    work: (subject: Subject, context: HandlerContext) => unknown,
    subject: Subject,
    context: HandlerContext,
  ): unknown => {
    if (time.aborted) return retryIn(0);
    const returned = work(subject, { ...context, signal: AbortSignal.any([context.signal, time]) });
    return isThenable(returned) ? Promise.race([returned, over]) : returned;
  };
  return typeof handler === "function"
    ? (message, context) => run(handler, message, context)
    : { handleBatch: (messages, context) => run(handler.handleBatch, messages, context) };
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
