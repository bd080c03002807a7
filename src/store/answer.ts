import type { BuiltStatement } from "./statement.ts";

/** An answer that was given to a request. */
export interface Answer {
  /** Method and target of the request where its key belongs to them; else `""`. */
  readonly request: string;
  readonly status: number;
  /** Without NUL and well-formed, as HTTP headers are. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Two numbers of 64 bits, in decimal, that stand for a running request: its key, and its key with its body. */
export interface RequestLocks {
  readonly running: string;
  readonly body: string;
}

/** Answers to requests, kept for their duplicates. `digest`: of the message's identity, as in its claim. */
export interface AnswerStore {
  /** The statement that keeps an answer; it belongs into the transaction that applies the message. */
  keep(consumer: string, digest: string, answer: Answer): BuiltStatement;
  /** Keeps an answer in a transaction of its own, unless there is one, and resolves with the one that is kept. */
  keepNow(consumer: string, digest: string, answer: Answer): Promise<Answer>;
  find(digest: string): Promise<Answer | undefined>;
  /** The statement that shows to other processes, while its transaction lasts, that a request is running. */
  hold(locks: RequestLocks): BuiltStatement;
  /** Whether a request of the same key, with another body, is running somewhere. */
  isOtherRunning(locks: RequestLocks): Promise<boolean>;
}
