import type { OutboxOperatorStore } from "../store/outbox-operator.ts";
import type { DestinationHealth } from "./destination-worker.ts";

/** Tells the database how the destinations do, for `inbox outbox status`. */
export interface Reports {
  start(): Promise<void>;
  /** Tells it the last time. Never rejects. */
  stop(): Promise<void>;
}

export interface ReportsOptions {
  readonly store: OutboxOperatorStore;
  readonly relayId: string;
  readonly health: () => readonly (readonly [destination: string, health: DestinationHealth])[];
  readonly storeFailed: (error: unknown) => void;
}

const everyMs = 2_000;

/** One small statement for all destinations, every two seconds. Nothing depends on it. */
export function createReports({ store, relayId, health, storeFailed }: ReportsOptions): Reports {
  let timer: NodeJS.Timeout | undefined;
  let telling: Promise<void> = Promise.resolve();

  async function tell(closed: boolean): Promise<void> {
    const reports = health().map(
      ([destination, { pausedForMs, lastSentMs, sent, failed, inHand, lastError }]) => ({
        ...{ destination, pausedForMs, lastSentMs, sent, failed, inHand, lastError },
      }),
    );
    try {
      await store.report(relayId, reports, closed);
    } catch (error) {
      storeFailed(error);
    }
  }

  return {
    async start() {
      await tell(false);
      timer = setInterval(() => {
        telling = telling.then(() => tell(false));
      }, everyMs);
    },
    async stop() {
      clearInterval(timer);
      await telling;
      await tell(true);
    },
  };
}
