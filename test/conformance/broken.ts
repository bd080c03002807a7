import { receiveMessage } from "../../src/message/create-message.ts";
import { isRejected } from "../../src/message/message.ts";
import type { Delivery, Source } from "../../src/sources/source.ts";
import { referenceSource } from "./broker/reference-source.ts";
import type { Subject } from "./subject.ts";
import { subject as reference, type ReferenceConfig } from "./subjects/reference.ts";

/** What a source can get wrong, each one something that real ones have done. */
export type Fault =
  | "acks at delivery"
  | "takes redeliveries for done"
  | "forgets a settlement"
  | "forgets settlements at close"
  | "settles twice"
  | "settles on another connection"
  | "never reconnects"
  | "never extends"
  | "delivers backwards"
  | "delivers twice"
  | "drops copies"
  | "makes up ids"
  | "stays open"
  | "takes all there is"
  | "gives up when nothing is settled"
  | "says that something waits";

interface BrokenConfig extends ReferenceConfig {
  readonly fault: Fault;
}

const patienceMs = 5_000;

/** The reference broker with a source that has the fault. */
export const brokenSubject = (fault: Fault): Subject => ({
  ...reference,
  name: fault,
  module: import.meta.filename,
  patienceMs,
  async open(t, needs, suite) {
    const place = await reference.open(t, needs, suite);
    const config: BrokenConfig = { ...(place!.config as ReferenceConfig), fault };
    return { ...place!, config };
  },
});

/** For the consumer processes. */
export function makeSource({ fault, ...config }: BrokenConfig): Source {
  switch (fault) {
    case "settles twice":
      return referenceSource(config, { settlesTwice: true });
    case "settles on another connection":
      return referenceSource(config, { keepsTags: true });
    case "never reconnects":
      return referenceSource(config, { neverReconnects: true });
    case "takes all there is":
      return referenceSource(config, { takesAll: true });
    case "gives up when nothing is settled": {
      const source = referenceSource(config);
      let idle: NodeJS.Timeout | undefined;
      return {
        ...source,
        start: (intake) => {
          idle = setTimeout(() => intake.end(new Error("nothing was settled")), 500);
          return source.start(intake);
        },
        settle(settlements) {
          idle?.refresh();
          return source.settle(settlements);
        },
        close() {
          clearTimeout(idle);
          return source.close();
        },
      };
    }
    case "says that something waits":
      return { ...referenceSource(config), lag: async () => 1 };
    case "acks at delivery":
      return settlingAtDelivery(referenceSource(config), () => true);
    case "takes redeliveries for done":
      return handingOver(referenceSource(config), (deliveries, source) => {
        const again = deliveries.filter(({ redelivered }) => redelivered);
        void source.settle(again.map((delivery) => [delivery, { kind: "ack" }])).catch(() => undefined);
        return deliveries.filter(({ redelivered }) => !redelivered);
      });
    case "drops copies": {
      const seen = new Set<string>();
      return handingOver(referenceSource(config), (deliveries) =>
        deliveries.filter(({ received }) => {
          if (isRejected(received) || !seen.has(received.id)) {
            if (!isRejected(received)) seen.add(received.id);
            return true;
          }
          return false;
        }),
      );
    }
    case "delivers backwards":
      return handingOver(referenceSource(config), (deliveries) => deliveries.toReversed());
    case "delivers twice":
      return handingOver(referenceSource(config), (deliveries) => [...deliveries, ...deliveries.slice(-1)]);
    case "makes up ids":
      return makingUpIds(referenceSource(config));
    case "never extends":
      return { ...referenceSource(config), extend: async () => undefined };
    case "forgets a settlement": {
      const source = referenceSource(config);
      let first: Delivery | undefined;
      return {
        ...source,
        async settle(settlements) {
          first ??= settlements[0]?.[0];
          await source.settle(settlements.filter(([delivery]) => delivery !== first));
        },
      };
    }
    case "forgets settlements at close": {
      // Told in tens, and what is left over never.
      const source = referenceSource(config);
      let kept: Parameters<Source["settle"]>[0] = [];
      return {
        ...source,
        async settle(settlements) {
          kept = [...kept, ...settlements];
          if (kept.length < 10) return;
          const settled = kept;
          kept = [];
          await source.settle(settled);
        },
      };
    }
    case "stays open": {
      const source = referenceSource(config);
      return { ...source, close: async () => void setInterval(() => undefined, 1_000) };
    }
  }
}

/** The source, with other deliveries than its own. */
function handingOver(
  source: Source,
  change: (deliveries: readonly Delivery[], source: Source) => readonly Delivery[],
): Source {
  return {
    ...source,
    start: (intake) =>
      source.start({ ...intake, deliver: (deliveries) => intake.deliver(change(deliveries, source)) }),
  };
}

function settlingAtDelivery(source: Source, which: (delivery: Delivery) => boolean): Source {
  return {
    ...handingOver(source, (deliveries) => {
      const acked = deliveries.filter(which).map((delivery) => [delivery, { kind: "ack" }] as const);
      void source.settle(acked).catch(() => undefined);
      return deliveries;
    }),
    settle: (settlements) => source.settle(settlements.filter(([delivery]) => !which(delivery))),
  };
}

function makingUpIds(source: Source): Source {
  const own = new Map<Delivery, Delivery>();
  let made = 0;
  return {
    ...handingOver(source, (deliveries) =>
      deliveries.map((delivery) => {
        const { received } = delivery;
        if (!isRejected(received)) return delivery;
        const invented = receiveMessage({
          ...{ producer: "payments", id: `made-up-${++made}`, key: "k0", payload: received.bytes },
        });
        const other: Delivery = { received: invented, redelivered: delivery.redelivered };
        own.set(other, delivery);
        return other;
      }),
    ),
    settle: (settlements) =>
      source.settle(settlements.map(([delivery, settlement]) => [own.get(delivery) ?? delivery, settlement])),
  };
}
