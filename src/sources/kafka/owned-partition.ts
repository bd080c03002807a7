import type { Received } from "../../message/message.ts";
import type { Delivery, LogPosition } from "../source.ts";
import type { Assignment, TopicPartition } from "./client.ts";
import type { PartitionCursor } from "./cursor-reader.ts";
import { createPartitionLog, type LogEntry, type PartitionLog } from "./partition-log.ts";

/** One partition during one assignment. A later assignment of the same partition is another object. */
export interface OwnedPartition extends TopicPartition {
  readonly log: PartitionLog;
  /** With strict order: the right to apply what is in it. */
  readonly position: LogPosition | undefined;
  /** With the cursor strategy. */
  readonly cursor: PartitionCursor | undefined;
  /** The record that was read last, or everything up to what is applied. */
  previous: bigint | undefined;
  /** `closing`: it is being given back; what is in hand may still be settled. `gone`: settlements change nothing. */
  state: "open" | "closing" | "gone";
  /** What the broker is known to have as the group's offset. */
  committed: bigint | undefined;
  /** Deliveries that the runner has. */
  inHand: number;
  paused: boolean;
  /** How many of the next records may have been in the hand of an owner that died. */
  suspects: number;
  /** Called when `inHand` becomes 0. */
  onDrained: () => void;
}

/** One message of a record in the runner's hand, or waiting to be handed over again. */
export interface Hand {
  readonly partition: OwnedPartition;
  readonly entry: LogEntry;
  readonly received: Received;
  /** With the cursor strategy: of the record before it. */
  readonly previous?: bigint | undefined;
  /** The record's time, in milliseconds since 1970. */
  readonly brokerTime?: number | undefined;
}

/** What was handed over, delivery by delivery. */
export interface Hands {
  give(hand: Hand, redelivered: boolean): Delivery;
  /** Takes a delivery back; `undefined` for one that is not in hand. */
  take(delivery: Delivery): Hand | undefined;
  /** Deliveries that the runner has, and their payload bytes. */
  readonly count: number;
  readonly bytes: number;
}

/** Payload bytes of a message. */
export const sizeOf = ({ received }: Hand): number => received.bytes?.byteLength ?? 0;

export const createOwnedPartition = (
  assignment: Assignment,
  suspects: number,
  position: LogPosition | undefined,
  cursor?: PartitionCursor,
): OwnedPartition => ({
  topic: assignment.topic,
  partition: assignment.partition,
  log: createPartitionLog(assignment.start),
  position,
  cursor,
  previous: cursor?.applied,
  state: "open",
  committed: assignment.start,
  inHand: 0,
  paused: false,
  suspects,
  onDrained: () => undefined,
});

export function createHands(): Hands {
  const hands = new Map<Delivery, Hand>();
  let bytes = 0;
  return {
    give(hand, redelivered) {
      const { partition, entry, received, previous, brokerTime } = hand;
      const position: LogPosition | undefined = partition.cursor
        ? { ...partition.cursor.position, record: { offset: entry.offset, previous } }
        : partition.position;
      const delivery: Delivery = {
        ...{ received, redelivered },
        ...(position === undefined ? {} : { position }),
        ...(brokerTime === undefined ? {} : { brokerTime }),
      };
      hands.set(delivery, hand);
      hand.partition.inHand++;
      bytes += sizeOf(hand);
      return delivery;
    },
    take(delivery) {
      const hand = hands.get(delivery);
      if (hand === undefined) return undefined;
      hands.delete(delivery);
      bytes -= sizeOf(hand);
      if (--hand.partition.inHand === 0) hand.partition.onDrained();
      return hand;
    },
    get count() {
      return hands.size;
    },
    get bytes() {
      return bytes;
    },
  };
}

/** Resolves when the runner has nothing of these partitions any more, or the time is over. */
export async function drained(partitions: readonly OwnedPartition[], timeoutMs: number): Promise<void> {
  const busy = partitions.filter((partition) => partition.inHand > 0);
  if (busy.length === 0) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, timeoutMs)));
  const all = busy.map((partition) => new Promise<void>((resolve) => (partition.onDrained = resolve)));
  await Promise.race([Promise.all(all), late]);
  clearTimeout(timer);
}
