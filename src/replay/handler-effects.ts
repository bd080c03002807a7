import { InboxError } from "../errors.ts";
import type { BatchHandler, HandlerContext, MessageHandler } from "../inbox/handler.ts";
import type { HandlerOutbox } from "../inbox/handler-outbox.ts";
import { identityDigest } from "../message/identity.ts";
import type { Identity, Message } from "../message/message.ts";
import { showValue } from "../message/show-value.ts";
import { derivedEffectId } from "../outbox/effect-id.ts";
import type { ReplayTarget } from "./policy.ts";

/** What a handler is given in a replay. */
export interface ReplayContext extends HandlerContext {
  /**
   * A name for what is done for a message under this policy, as 32 hex digits: the same whenever it is done, and another
   * one than the original's. For a correction it follows from (original, migration, message).
   */
  operationId(message: Identity): string;
}

/** Handles one message in a replay; as a handler does, and it may be the same one. */
export type ReplayMessageHandler<Data = unknown> = (
  message: Message<Data>,
  context: ReplayContext,
) => unknown;

/** Handles all new messages of a lane at once in a replay. */
export interface ReplayBatchHandler<Data = unknown> {
  readonly handleBatch: (messages: readonly Message<Data>[], context: ReplayContext) => unknown;
}

/** A handler as `createInbox` takes it, or one that also asks for operation ids. */
export type ReplayHandler = ReplayMessageHandler | ReplayBatchHandler;

/** What became of effects, and whom to tell when the first one is refused. */
export interface EffectsWatch {
  dropped(): void;
  refused(error: InboxError): void;
}

/**
 * The handler under a policy: its outbox sends, drops or refuses. A refused effect fails the handler even if it catches
 * the error, so that nothing of a message commits whose effects are missing.
 */
export function handlerUnder(
  target: ReplayTarget,
  handler: ReplayHandler,
  watch: EffectsWatch,
): MessageHandler | BatchHandler {
  const operationId = (message: Identity): string => identityDigest(target.consumer, message);
  let over: InboxError | undefined;

  function run<Subject>(
    call: (subject: Subject, context: ReplayContext) => unknown,
    subject: Subject,
    context: HandlerContext,
    digest: string | undefined,
  ): unknown {
    if (target.effects === "send") return call(subject, { ...context, operationId });
    // The replay is ending: what else is in hand shall not run into the same.
    if (over !== undefined) throw over;
    let refused: InboxError | undefined;
    let unnamed = 0;
    const outbox: HandlerOutbox = {
      send(effect) {
        const id = effect.id ?? (digest === undefined ? undefined : derivedEffectId(digest, unnamed++));
        if (id === undefined)
          throw new InboxError("invalid-effect", "A batch handler must give each effect an id.");
        if (target.effects === "drop") {
          watch.dropped();
          return id;
        }
        refused = new InboxError(
          "effect-refused",
          `The handler asked for the effect ${showValue(id)} to ${showValue(effect.destination)}. A ${target.kind} sends no effects: leave them out, or have them dropped.`,
        );
        throw refused;
      },
    };
    const check = (value: unknown): unknown => {
      if (refused === undefined) return value;
      over = refused;
      watch.refused(refused);
      throw refused;
    };
    let value: unknown;
    try {
      value = call(subject, { ...context, outbox, operationId });
    } catch (error) {
      check(undefined);
      throw error;
    }
    if (!isThenable(value)) return check(value);
    return value.then(check, (error: unknown) => {
      check(undefined);
      throw error;
    });
  }

  if (typeof handler === "function") {
    return (message, context) => run<Message>(handler, message, context, operationId(message));
  }
  return {
    handleBatch: (messages, context) =>
      run<readonly Message[]>(
        (list, given) => handler.handleBatch(list, given),
        messages,
        context,
        undefined,
      ),
  };
}

const isThenable = (value: unknown): value is Promise<unknown> =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
