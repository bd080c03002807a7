import type { Received } from "../message/message.ts";
import type { Delivery } from "./source.ts";

/** Where a raw delivery stands in its input, and what it takes in memory. */
export interface Place {
  readonly start: number;
  readonly bytes: number;
}

interface Entry extends Place {
  /** How many of its messages are not settled. */
  open: number;
}

/** One message of a raw delivery that was handed over and is not settled. */
export interface Part {
  readonly entry: Entry;
  readonly received: Received;
}

/**
 * What was handed over and is not settled, in the input's order, in hand or waiting to be handed over again. A raw
 * delivery with several messages is settled when all of them are.
 */
export interface Unsettled {
  /** Adds the messages of a raw delivery that are about to be handed over. */
  add(place: Place, messages: readonly Received[], redelivered: boolean): readonly Delivery[];
  /** Takes a delivery out of the runner's hand; `undefined` if it is not there. */
  take(delivery: Delivery): Part | undefined;
  /** Hands a part over again. */
  again(part: Part, redelivered: boolean): Delivery;
  /** Forgets a part that is settled. */
  remove(part: Part): void;
  /** Where the first unsettled raw delivery begins; `undefined` when all is settled. */
  first(): number | undefined;
  /** Raw deliveries that are not settled. */
  readonly count: number;
  /** Bytes of raw deliveries that are kept in memory. */
  readonly bytes: number;
}

export function createUnsettled(): Unsettled {
  // Sets keep the order of insertion, and deliveries are added in the input's order: the first one is the lowest.
  const entries = new Set<Entry>();
  const inHand = new Map<Delivery, Part>();
  let bytes = 0;

  const again = (part: Part, redelivered: boolean): Delivery => {
    const delivery: Delivery = { received: part.received, redelivered };
    inHand.set(delivery, part);
    return delivery;
  };

  return {
    add(place, messages, redelivered) {
      if (messages.length === 0) return [];
      const entry: Entry = { start: place.start, bytes: place.bytes, open: messages.length };
      entries.add(entry);
      bytes += entry.bytes;
      return messages.map((received) => again({ entry, received }, redelivered));
    },
    take(delivery) {
      const part = inHand.get(delivery);
      inHand.delete(delivery);
      return part;
    },
    again,
    remove({ entry }) {
      entry.open--;
      if (entry.open === 0 && entries.delete(entry)) bytes -= entry.bytes;
    },
    first() {
      for (const entry of entries) return entry.start;
      return undefined;
    },
    get count() {
      return entries.size;
    },
    get bytes() {
      return bytes;
    },
  };
}
