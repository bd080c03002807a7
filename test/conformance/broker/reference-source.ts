import { setTimeout as sleep } from "node:timers/promises";
import { receiveMessage } from "../../../src/message/create-message.ts";
import type { Delivery, Intake, Source } from "../../../src/sources/source.ts";
import { openConnection, type Connection } from "./client.ts";
import type { Handed } from "./protocol.ts";

const reconnectMs = 20;

/** What a source can get wrong inside, for the suite to find. */
export interface Flaws {
  /** Settles what came by an earlier connection. */
  readonly keepsTags?: boolean;
  readonly settlesTwice?: boolean;
  readonly neverReconnects?: boolean;
  readonly takesAll?: boolean;
}

/** The reference broker as a source: what a right one does, in as few lines as it takes. */
export function referenceSource({ port }: { readonly port: number }, flaws: Flaws = {}): Source {
  // A delivery is settled on the connection it came by or not at all: elsewhere its tag is unknown, or another's.
  const held = new Map<Delivery, number>();
  let connection: Connection | undefined;
  let stopped = false;
  let closed = false;

  function deliver(intake: Intake, list: readonly Handed[]): void {
    if (stopped) return;
    const deliveries = list.map(({ tag, id, key, body, redelivered }) => {
      const received = receiveMessage({ producer: "payments", id: id!, key, payload: body });
      const delivery: Delivery = { received, redelivered };
      held.set(delivery, tag);
      return delivery;
    });
    void intake.deliver(deliveries);
  }

  async function open(intake: Intake): Promise<void> {
    const opened = await openConnection(port, {
      deliveries: (list) => deliver(intake, list),
      lost: () => {
        if (!flaws.keepsTags) held.clear();
        connection = undefined;
        void reopen(intake);
      },
    });
    if (closed) return opened.end();
    connection = opened;
    opened.tell({ consume: { prefetch: flaws.takesAll ? 1_000_000 : intake.facts.maxInHand } });
  }

  async function reopen(intake: Intake): Promise<void> {
    while (!closed && !stopped && !flaws.neverReconnects) {
      await sleep(reconnectMs, undefined, { ref: false });
      try {
        return await open(intake);
      } catch {
        // It comes back, or the run is stopped.
      }
    }
  }

  return {
    name: "reference",
    start: open,
    async settle(settlements) {
      const settled = settlements.flatMap(([delivery, settlement]) => {
        const tag = held.get(delivery);
        held.delete(delivery);
        if (tag === undefined) return [];
        return [
          { tag, kind: settlement.kind, afterMs: settlement.kind === "retry" ? settlement.afterMs : 0 },
        ];
      });
      if (settled.length === 0) return;
      await connection?.ask({ settle: settled });
      if (flaws.settlesTwice) await connection?.ask({ settle: settled });
    },
    async extend(deliveries) {
      const tags = deliveries.flatMap((delivery) => held.get(delivery) ?? []);
      if (tags.length > 0) connection?.tell({ extend: tags });
    },
    async lag() {
      return (await connection?.ask({ counts: true }))?.unsettled;
    },
    async stop() {
      stopped = true;
      connection?.tell({ consume: { prefetch: 0 } });
    },
    async close() {
      closed = true;
      connection?.end();
    },
  };
}
