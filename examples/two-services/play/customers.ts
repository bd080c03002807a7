import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../demo/random.ts";
import type { Order } from "../order-placed.ts";

/** Customers who order one thing after another, and ask again until they have an answer. */
export interface Customers {
  /** Orders that were answered. */
  readonly placed: ReadonlyMap<string, Order>;
  /** Requests that had no answer, or a bad one. */
  failed(): number;
  /** Why the last of them failed. */
  lastFailure(): string;
  /** They order nothing more. Resolves when the last order of each is answered; rejects if that takes too long. */
  stop(): Promise<void>;
}

export interface CustomersOptions {
  readonly address: string;
  readonly customers: number;
  readonly random: Random;
  /** Aborted when nobody is to wait for answers any more. */
  readonly signal: AbortSignal;
}

const thinkMs = [5, 120] as const;
const askAgainMs = 50;
const answerTimeoutMs = 5_000;
const lastAnswerMs = 60_000;

export function startCustomers({ address, customers, random, signal }: CustomersOptions): Customers {
  const placed = new Map<string, Order>();
  let failed = 0;
  let lastFailure = "none";
  let open = true;
  const over = new AbortController();

  async function ask(order: Order): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      over.signal.throwIfAborted();
      try {
        const response = await fetch(address, {
          method: "POST",
          body: JSON.stringify(order),
          signal: AbortSignal.timeout(answerTimeoutMs),
        });
        const text = await response.text();
        if (response.ok) return;
        lastFailure = `HTTP ${response.status}: ${text}`;
      } catch (error) {
        // Nobody knows whether it was placed.
        const { message, cause } = error as Error;
        lastFailure = cause instanceof Error ? `${message}: ${cause.message}` : message;
      }
      failed++;
      await sleep(askAgainMs);
    }
  }

  async function buy(customer: string): Promise<void> {
    for (let n = 1; open; n++) {
      const order = { id: `${customer}-${n}`, customer, cents: random.whole(100, 99_999) };
      await ask(order);
      placed.set(order.id, order);
      await sleep(random.whole(...thinkMs));
    }
  }

  const all = Array.from({ length: customers }, (_, i) => buy(`c${i + 1}`));
  const ends = Promise.all(all);
  ends.catch(() => undefined);
  return {
    placed,
    failed: () => failed,
    lastFailure: () => lastFailure,
    async stop() {
      open = false;
      const late = setTimeout(
        () =>
          over.abort(new Error(`The orders service did not take the last orders in time: ${lastFailure}`)),
        lastAnswerMs,
      );
      try {
        await ends;
      } finally {
        clearTimeout(late);
      }
    },
  };
}
