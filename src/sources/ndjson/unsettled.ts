import type { Received } from "../../message/message.ts";
import type { Delivery } from "../source.ts";
import type { Line } from "./line-splitter.ts";

/** A line that was handed over and is not settled. */
export interface Entry {
  readonly start: number;
  readonly bytes: number;
  readonly received: Received;
}

/** What was handed over and is not settled, in the file's order, in hand or waiting to be handed over again. */
export interface Unsettled {
  /** Adds lines that are about to be handed over. */
  add(line: Line, received: Received, redelivered: boolean): Delivery;
  /** Takes a delivery out of the runner's hand; `undefined` if it is not there. */
  take(delivery: Delivery): Entry | undefined;
  /** Hands an entry over again. */
  again(entry: Entry, redelivered: boolean): Delivery;
  /** Forgets an entry that is settled. */
  remove(entry: Entry): void;
  /** Where the first unsettled line begins; `undefined` when all is settled. */
  first(): number | undefined;
  readonly count: number;
  /** Bytes of lines that are kept in memory. */
  readonly bytes: number;
}

export function createUnsettled(): Unsettled {
  // Sets keep the order of insertion, and lines are added in the file's order: the first one is the lowest.
  const entries = new Set<Entry>();
  const inHand = new Map<Delivery, Entry>();
  let bytes = 0;

  const again = (entry: Entry, redelivered: boolean): Delivery => {
    const delivery: Delivery = { received: entry.received, redelivered };
    inHand.set(delivery, entry);
    return delivery;
  };

  return {
    add(line, received, redelivered) {
      const entry: Entry = { start: line.start, bytes: line.bytes.length, received };
      entries.add(entry);
      bytes += entry.bytes;
      return again(entry, redelivered);
    },
    take(delivery) {
      const entry = inHand.get(delivery);
      inHand.delete(delivery);
      return entry;
    },
    again,
    remove(entry) {
      if (entries.delete(entry)) bytes -= entry.bytes;
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
