import type { Delivery, Settlement } from "../source.ts";

/** A message between its receive and its settlement, with one delivery for each message in it. */
export interface Held {
  readonly messageId: string;
  readonly group: string | undefined;
  readonly bytes: number;
  readonly deliveries: readonly Delivery[];
  /** The newest: a second receive makes those before it useless. */
  handle: string;
  /** When it was last received, by the monotonic clock, in milliseconds: the 12 hours are counted from here. */
  receivedAt: number;
  /** When SQS hands it over again, if nothing is done, by the same clock. */
  visibleAt: number;
  /** Deliveries that are not settled. */
  open: number;
  ending: Settlement;
  /** SQS has it back although it is not settled: its time with one consumer is over, or its handle is not valid. */
  lost: boolean;
}

/** What is in hand, of which each message is there once. */
export interface HeldMessages {
  add(held: Held): void;
  find(messageId: string): Held | undefined;
  /** Marks one delivery as settled; the message, once all its deliveries are. */
  settle(delivery: Delivery, settlement: Settlement): Held | undefined;
  /** Forgets a message that goes back as a whole. */
  remove(held: Held): void;
  all(): Iterable<Held>;
  readonly count: number;
  readonly bytes: number;
}

export function createHeldMessages(): HeldMessages {
  const byId = new Map<string, Held>();
  const byDelivery = new Map<Delivery, Held>();
  let bytes = 0;

  function remove(held: Held): void {
    if (byId.get(held.messageId) !== held) return;
    byId.delete(held.messageId);
    bytes -= held.bytes;
    for (const delivery of held.deliveries) byDelivery.delete(delivery);
  }

  return {
    add(held) {
      byId.set(held.messageId, held);
      bytes += held.bytes;
      for (const delivery of held.deliveries) byDelivery.set(delivery, held);
    },
    find: (messageId) => byId.get(messageId),
    settle(delivery, settlement) {
      const held = byDelivery.get(delivery);
      if (held === undefined) return undefined;
      byDelivery.delete(delivery);
      held.ending = worse(held.ending, settlement);
      held.open--;
      if (held.open > 0) return undefined;
      remove(held);
      return held;
    },
    remove,
    all: () => byId.values(),
    get count() {
      return byId.size;
    },
    get bytes() {
      return bytes;
    },
  };
}

/** A message is done when all in it is; what was done of it is found as duplicates when it comes again. */
function worse(a: Settlement, b: Settlement): Settlement {
  if (a.kind === "retry" && b.kind === "retry") return a.afterMs > b.afterMs ? a : b;
  if (a.kind === "retry" || b.kind === "retry") return a.kind === "retry" ? a : b;
  return a.kind === "release" ? a : b;
}
