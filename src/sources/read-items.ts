import type { Format, RawDelivery } from "../message/formats/format.ts";
import type { Received } from "../message/message.ts";

/** What a raw delivery holds: its messages in their order; what is none has been counted. */
export interface ItemReader {
  read(delivery: RawDelivery): readonly Received[];
  /** How many parts of deliveries were no messages and needed no handling, by reason. */
  ignored(): Readonly<Record<string, number>>;
}

// A user's own format may give any number of reasons.
const maxReasons = 100;
const maxReasonCharacters = 200;

/** Reads deliveries with a format and counts what it ignores. */
export function createItemReader(format: Format): ItemReader {
  const counts = new Map<string, number>();
  const count = (reason: string): void => {
    const short = reason.slice(0, maxReasonCharacters);
    const name = counts.has(short) || counts.size < maxReasons ? short : "other reasons";
    counts.set(name, (counts.get(name) ?? 0) + 1);
  };
  return {
    read: (delivery) =>
      format.read(delivery).flatMap((item) => {
        if (item.kind === "message") return [item.received];
        count(item.reason);
        return [];
      }),
    ignored: () => Object.fromEntries(counts),
  };
}
