import { isRejected, type Message } from "../message/message.ts";
import { InboxError } from "../errors.ts";
import type { Delivery, Intake, Source } from "../sources/source.ts";

/** What is told of each batch that a source hands over. */
export interface SurveyVisitor {
  messages(messages: readonly Message[]): Promise<void>;
  /** What could not be read as a message. */
  unreadable(count: number): void;
  warn(message: string): void;
}

const maxInHand = 2_000;

/**
 * Reads a source to its end and settles everything, without handling anything. Give it a source that remembers nothing
 * of it. Rejects with `source-failed`, or with what the visitor throws.
 */
export async function survey(source: Source, consumer: string, visitor: SurveyVisitor): Promise<void> {
  let finish: (error?: Error) => void = () => undefined;
  const finished = new Promise<Error | undefined>((resolve) => (finish = resolve));
  let looked: Promise<void> = Promise.resolve();
  let failed: unknown;

  async function look(deliveries: readonly Delivery[]): Promise<void> {
    if (failed !== undefined) return;
    try {
      const messages = deliveries.flatMap(({ received }) => (isRejected(received) ? [] : [received]));
      visitor.unreadable(deliveries.length - messages.length);
      if (messages.length > 0) await visitor.messages(messages);
      await source.settle(deliveries.map((delivery) => [delivery, { kind: "ack" }]));
    } catch (error) {
      failed = error ?? new Error("Something was thrown that is nothing.");
      finish();
    }
  }

  const intake: Intake = {
    facts: {
      ...{ consumer, lanes: 1, maxInHand, maxInHandBytes: 64 * 1024 * 1024 },
      ...{ handlerTimeoutMs: 30_000, extendEveryMs: 10_000 },
    },
    warn: (message) => visitor.warn(message),
    // One after another, whatever the source does.
    deliver: (deliveries) => (looked = looked.then(() => look(deliveries))),
    end: (error) => finish(error),
  };
  try {
    await source.start(intake);
    const error = await finished;
    await looked;
    if (failed !== undefined) throw failed;
    if (error !== undefined)
      throw new InboxError("source-failed", `${source.name} ended: ${error.message}`, { cause: error });
  } finally {
    await source.stop();
    await source.close();
  }
}
