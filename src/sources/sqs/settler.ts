import type { SqsApi } from "./client.ts";
import { chunksOf, inParallel } from "./in-parallel.ts";
import { errorName } from "./sdk-error.ts";

/** A message by its newest receipt handle. */
export interface Receipt {
  readonly messageId: string;
  readonly handle: string;
}

export interface VisibilityChange extends Receipt {
  /** When SQS may hand it over again, in whole seconds from now; 0: at once. */
  readonly seconds: number;
}

/** Tells SQS what became of messages. Never rejects: what SQS does not learn is delivered again and found a duplicate. */
export interface Settler {
  /** Resolves when each has been tried once. What failed is tried again in the background. */
  delete(receipts: readonly Receipt[]): Promise<void>;
  /** Whether the message is to be deleted, and SQS has not confirmed it. */
  isDeleting(messageId: string): boolean;
  /** In the order given where it is one queue with order, else in parallel. Tried once: the queue's own timeout does the rest. */
  change(changes: readonly VisibilityChange[]): Promise<void>;
  /** Tries what is left once more, and gives up. */
  close(): Promise<void>;
}

export interface SettlerParts {
  readonly api: SqsApi;
  /** Whether the order of changes matters. */
  readonly ordered: boolean;
  readonly warn: (message: string) => void;
  /** Wait before the first retry of a delete, in milliseconds; four times as long before each next one. */
  readonly retryDelayMs: number;
}

// Requests of ten entries each, side by side.
const maxRequests = 10;
const maxBatch = 10;
// 0.1, 0.4, 1.6, 6.4 and 25.6 seconds: longer than that, and the message has been delivered again.
const maxRetries = 5;

export function createSettler({ api, ordered, warn, retryDelayMs }: SettlerParts): Settler {
  /** The newest receipt of each message whose delete is not confirmed. */
  const deleting = new Map<string, Receipt>();
  const timers = new Set<NodeJS.Timeout>();
  const sending = new Set<Promise<void>>();
  let closed = false;

  function track(work: Promise<void>): Promise<void> {
    sending.add(work);
    return work.finally(() => sending.delete(work));
  }

  function deleteAll(receipts: readonly Receipt[], retries: number): Promise<void> {
    const work = inParallel(chunksOf(receipts, maxBatch), maxRequests, (batch) =>
      deleteBatch(batch, retries),
    );
    sending.add(work);
    return work.finally(() => sending.delete(work));
  }

  async function deleteBatch(batch: readonly Receipt[], retries: number): Promise<void> {
    const failed: Receipt[] = [];
    try {
      const answers = await api.delete(batch.map(({ handle }) => handle));
      batch.forEach((receipt, i) => {
        const failure = answers[i];
        if (failure !== undefined && !failure.final) return failed.push(receipt);
        if (failure !== undefined) warn(`a delete was refused (${failure.code}); ${comesAgain}`);
        forget(receipt);
        return;
      });
    } catch (error) {
      failed.push(...batch);
      if (retries === maxRetries) warn(`messages could not be deleted (${errorName(error)}); ${comesAgain}`);
    }
    retryLater(failed, retries + 1);
  }

  function forget(receipt: Receipt): void {
    // A newer receipt has a delete of its own.
    if (deleting.get(receipt.messageId) === receipt) deleting.delete(receipt.messageId);
  }

  function retryLater(failed: readonly Receipt[], retries: number): void {
    const current = failed.filter((receipt) => deleting.get(receipt.messageId) === receipt);
    if (current.length === 0 || closed) return;
    if (retries > maxRetries) return current.forEach(forget);
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        void deleteAll(current, retries);
      },
      retryDelayMs * 4 ** (retries - 1),
    );
    timers.add(timer);
  }

  async function changeBatch(batch: readonly VisibilityChange[]): Promise<void> {
    try {
      const answers = await api.changeVisibility(batch);
      const refused = answers.find((failure) => failure !== undefined);
      if (refused !== undefined) warn(`a message could not be given back (${refused.code}); ${laterOnly}`);
    } catch (error) {
      warn(`messages could not be given back (${errorName(error)}); ${laterOnly}`);
    }
  }

  return {
    delete(receipts) {
      for (const receipt of receipts) deleting.set(receipt.messageId, receipt);
      return deleteAll(receipts, 0);
    },
    isDeleting: (messageId) => deleting.has(messageId),
    change: (changes) =>
      track(inParallel(chunksOf(changes, maxBatch), ordered ? 1 : maxRequests, changeBatch)),
    async close() {
      closed = true;
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
      await Promise.all(sending);
      await deleteAll([...deleting.values()], maxRetries);
    },
  };
}

const comesAgain = "they are delivered again and found to be duplicates";
const laterOnly = "they are delivered again when their visibility timeout is over";
