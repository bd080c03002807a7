import type { Delivery, Received, Source } from "../../src/index.ts";
import type { FromConsumer, ToConsumer } from "./broker.ts";

/**
 * The broker as a source for `inbox.run`, from inside a consumer process. `read` makes a message of a body and never
 * throws. This is all that it takes to connect a queue of your own.
 */
export function brokerSource(read: (body: string) => Received): Source {
  const tags = new WeakMap<Delivery, number>();
  const tell = (message: FromConsumer): void => void process.send?.(message);
  let receive: ((message: object) => void) | undefined;
  return {
    name: "broker",
    async start(intake) {
      receive = (message) => {
        if (!("deliveries" in message)) return;
        const deliveries = (message as ToConsumer).deliveries.map(({ tag, body, redelivered }) => {
          const delivery: Delivery = { received: read(body), redelivered };
          tags.set(delivery, tag);
          return delivery;
        });
        // Nothing waits for room here: the broker's prefetch bounds what is in hand.
        void intake.deliver(deliveries);
      };
      process.on("message", receive);
      process.once("disconnect", () => intake.end());
      tell({ ready: true });
    },
    async settle(settlements) {
      const settled = settlements.map(([delivery, settlement]) => ({
        tag: tags.get(delivery)!,
        ack: settlement.kind === "ack",
        afterMs: settlement.kind === "retry" ? settlement.afterMs : 0,
      }));
      tell({ settled });
    },
    async stop() {
      if (receive !== undefined) process.off("message", receive);
    },
    async close() {
      // What is in hand and not settled is delivered again, to somebody else.
      if (receive !== undefined && process.connected) process.disconnect();
    },
  };
}
