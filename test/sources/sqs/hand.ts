import type { TestContext } from "node:test";
import { isRejected } from "../../../src/message/message.ts";
import type { Delivery, RunFacts, Source } from "../../../src/sources/source.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { testIntake } from "../../support/intake.ts";

/** A source in a test's hand, without a runner: each delivery is seen, and settled as the test says. */
export interface Hand {
  readonly source: Source;
  /** The next delivery, or the next ones; rejects after 15 s. */
  next(): Promise<Delivery>;
  take(count: number): Promise<readonly Delivery[]>;
  /** Deliveries that were handed over and not taken by the test. */
  readonly waiting: readonly Delivery[];
  readonly warnings: readonly string[];
  /** With what the source ended by itself. */
  readonly ended: Promise<Error | undefined>;
  ack(...deliveries: readonly Delivery[]): Promise<void>;
  retry(delivery: Delivery, afterMs?: number): Promise<void>;
  release(...deliveries: readonly Delivery[]): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the source; it ends with the test. */
export async function inHand(t: TestContext, source: Source, facts: Partial<RunFacts> = {}): Promise<Hand> {
  const waiting: Delivery[] = [];
  const warnings: string[] = [];
  let wake: () => void = () => undefined;
  let end: (error?: Error) => void = () => undefined;
  const ended = new Promise<Error | undefined>((resolve) => (end = resolve));
  let stopped = false;
  const intake = testIntake(
    {
      async deliver(deliveries) {
        if (stopped) throw new Error("The source delivers after it was stopped.");
        waiting.push(...deliveries);
        wake();
      },
      end,
      warn: (message) => void warnings.push(message),
    },
    facts,
  );
  onTestEnd(t, async () => {
    await source.stop();
    await source.close();
  });
  await source.start(intake);

  async function next(): Promise<Delivery> {
    const deadline = AbortSignal.timeout(60_000);
    while (waiting.length === 0) {
      if (deadline.aborted)
        throw new Error(`Nothing was delivered in 60 s. Warnings: ${warnings.join(" | ")}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
        deadline.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    return waiting.shift()!;
  }

  return {
    source,
    waiting,
    warnings,
    ended,
    next,
    async take(count) {
      const taken: Delivery[] = [];
      while (taken.length < count) taken.push(await next());
      return taken;
    },
    ack: (...deliveries) => source.settle(deliveries.map((delivery) => [delivery, { kind: "ack" }])),
    retry: (delivery, afterMs = 0) => source.settle([[delivery, { kind: "retry", afterMs }]]),
    release: (...deliveries) => source.settle(deliveries.map((delivery) => [delivery, { kind: "release" }])),
    async stop() {
      await source.stop();
      stopped = true;
    },
  };
}

/** The message's id, or why there is none. */
export const idOf = ({ received }: Delivery): string =>
  isRejected(received) ? received.rejected.code : received.id;
