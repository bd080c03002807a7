import { receiveMessage } from "../../src/index.ts";
import type { Delivery, Settlement, Source } from "../../src/index.ts";
import { accountIn, type Payment } from "../setup.ts";

export interface MemorySource extends Source {
  readonly latencies: readonly number[];
}

/** Delivers what `next` gives, as fast as the runner takes it, until it gives nothing; then waits for the settlements. */
export function memorySource(next: () => readonly Payment[] | undefined, keyed: boolean): MemorySource {
  const latencies: number[] = [];
  const sampled = new Map<Delivery, number>();
  let inHand = 0;
  let stopped = false;
  let exhausted = false;
  let end: (error?: Error) => void = () => undefined;
  return {
    name: "memory",
    latencies,
    async start(intake) {
      end = intake.end;
      void (async () => {
        for (let list = next(); list !== undefined && !stopped; list = next()) {
          const deliveries = list.map((payment): Delivery => ({
            received: received(payment, keyed),
            redelivered: false,
          }));
          inHand += deliveries.length;
          sampled.set(deliveries[0] as Delivery, performance.now());
          await intake.deliver(deliveries);
        }
        exhausted = true;
        if (inHand === 0) end();
      })();
    },
    async settle(settlements: readonly (readonly [Delivery, Settlement])[]) {
      for (const [delivery, { kind }] of settlements) {
        if (kind !== "ack") end(new Error("a benchmark message was not applied"));
        const begun = sampled.get(delivery);
        if (begun === undefined) continue;
        sampled.delete(delivery);
        latencies.push(performance.now() - begun);
      }
      inHand -= settlements.length;
      if (exhausted && inHand === 0) end();
    },
    async stop() {
      stopped = true;
    },
    async close() {},
  };
}

const received = ({ id, payload }: Payment, keyed: boolean): ReturnType<typeof receiveMessage> =>
  receiveMessage({ producer: "payments", id, payload, key: keyed ? keyOf(payload) : undefined });

const keys = new WeakMap<Buffer, string>();

/** The broker's own key, which comes beside the payload. */
function keyOf(payload: Buffer): string {
  let key = keys.get(payload);
  if (key === undefined) {
    key = `account-${accountIn(payload.toString())}`;
    keys.set(payload, key);
  }
  return key;
}
