import { InboxError } from "../errors.ts";
import { telemetry } from "../telemetry/channels.ts";
import type { LaneTransaction } from "../store/store.ts";
import type { QueryResult, Statement } from "../store/statement.ts";
import type { HandlerTx } from "./handler.ts";
import { controlsTransaction, endsTransaction } from "./transaction-control.ts";

const ignore = (): void => undefined;

/** A handler's `tx`, and what the lane must know of its use. */
export class SealedTx implements HandlerTx {
  readonly #transaction: LaneTransaction;
  #sealed = false;
  #running = 0;
  #failed: unknown;
  #used = false;

  constructor(transaction: LaneTransaction) {
    this.#transaction = transaction;
  }

  query<Row = Record<string, unknown>>(
    text: string | Statement,
    values?: readonly unknown[],
  ): Promise<QueryResult<Row>> {
    if (this.#sealed) {
      telemetry.sealed.publish({});
      return refused(
        "transaction-sealed",
        "This tx is over: its handler has settled. Await every query in the handler.",
      );
    }
    const statement = typeof text === "string" ? { text, values } : text;
    if (controlsTransaction(statement.text)) {
      return refused("invalid-handler", endsTransaction);
    }
    this.#used = true;
    this.#running++;
    const answer = this.#transaction.query<Row>(statement);
    // The handler gets the driver's own promise; this branch also marks it as handled, should nobody wait for it.
    answer.then(this.#onAnswer, this.#onError);
    return answer;
  }

  readonly #onAnswer = (): void => {
    this.#running--;
  };

  readonly #onError = (error: unknown): void => {
    this.#running--;
    this.#failed ??= error;
  };

  /** The handler has settled. Returns how many of its statements are still running. */
  seal(): number {
    this.#sealed = true;
    return this.#running;
  }

  /** Whether the handler ran a statement. */
  get used(): boolean {
    return this.#used;
  }

  /** The first error of a statement, which may have been swallowed. */
  get failed(): unknown {
    return this.#failed;
  }
}

/** Rejects where the call is awaited; a call nobody awaits must not end the process. */
function refused(code: "transaction-sealed" | "invalid-handler", message: string): Promise<never> {
  const rejection = Promise.reject(new InboxError(code, message));
  rejection.catch(ignore);
  return rejection;
}
