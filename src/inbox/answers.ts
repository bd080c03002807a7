import { createHash } from "node:crypto";
import type { FingerprintMode } from "../message/fingerprint.ts";
import type { Identity, Message } from "../message/message.ts";
import type { Answer, RequestLocks } from "../store/answer.ts";
import type { BuiltStatement } from "../store/statement.ts";
import type { Store } from "../store/store.ts";

export type { Answer } from "../store/answer.ts";

/** A request by what it asks for: two with the same key are the same request only if `body` is the same too. */
export interface RequestMark extends RequestLocks {
  /** The message's identity. */
  readonly digest: string;
}

/** The answers of one consumer, for receivers that must answer a duplicate as they answered the first. */
export interface Answers {
  /** The statement that keeps an answer. Run it, or return it, in the handler that applies the message. */
  keep(message: Identity, answer: Answer): BuiltStatement;
  /** Keeps an answer by itself, unless there is one, and resolves with the one that is kept. */
  keepNow(message: Identity, answer: Answer): Promise<Answer>;
  find(message: Identity): Promise<Answer | undefined>;
  /** `request`: what the body alone does not say, such as method and target. */
  markOf(message: Message, request: string): RequestMark;
  /** The statement that shows the request to other processes as long as its transaction lasts. */
  hold(mark: RequestMark): BuiltStatement;
  /** Whether another request under the same key is running somewhere, asking for something else. */
  isOtherRunning(mark: RequestMark): Promise<boolean>;
}

export function createAnswers(
  { answers }: Store,
  consumer: string,
  mode: FingerprintMode,
  digestOf: (identity: Identity) => string,
): Answers {
  return {
    keep: (message, answer) => answers.keep(consumer, digestOf(message), answer),
    keepNow: (message, answer) => answers.keepNow(consumer, digestOf(message), answer),
    find: (message) => answers.find(digestOf(message)),
    markOf(message, request) {
      const digest = digestOf(message);
      const { digest: fingerprint } = message.fingerprint(mode);
      return { digest, running: lockOf([digest]), body: lockOf([digest, fingerprint, request]) };
    },
    hold: (mark) => answers.hold(mark),
    isOtherRunning: (mark) => answers.isOtherRunning(mark),
  };
}

/** A number for an advisory lock. The name in front keeps it from an application's own. */
const lockOf = (parts: readonly string[]): string =>
  createHash("sha256")
    .update(JSON.stringify(["transactional-inbox request", ...parts]))
    .digest()
    .readBigInt64BE()
    .toString();
