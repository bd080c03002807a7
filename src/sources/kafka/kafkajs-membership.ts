import { nameOf, type Assignment, type ClientEvents, type TopicPartition } from "./client.ts";
import type { KafkajsAdmin, KafkajsConsumer } from "./kafkajs-shapes.ts";
import type { KafkajsWatermarks } from "./kafkajs-watermarks.ts";

/** One partition of the present generation. */
export interface KafkajsMember extends TopicPartition {
  /** Where the next batch must begin. */
  readonly next: bigint;
  /** How often reading was sent back there because a batch began elsewhere. */
  readonly sought: number;
  /** How far filtered batches reached since then, that began beyond `next`. */
  readonly passedTo: bigint | undefined;
}

/**
 * Who owns what, as kafkajs tells it. It joins again by itself and tells only afterwards, and batches it fetched before
 * may still come: so each generation begins with a seek to the group's committed offset, and a batch that does not begin
 * where it must is not taken.
 */
export interface KafkajsMembership {
  /** A new generation has begun with these partitions. */
  joined(assignment: Readonly<Record<string, readonly number[]>>): Promise<void>;
  /** The generation is about to end: what is in hand is finished, in the source's time. Twice is harmless. Never rejects. */
  handBack(): Promise<void>;
  /** The client has lost everything. */
  lost(): void;
  get(partition: TopicPartition): KafkajsMember | undefined;
  set(member: KafkajsMember): void;
  /** Raised with every generation. */
  readonly generation: number;
}

export interface KafkajsMembershipOptions {
  readonly groupId: string;
  readonly fromBeginning: boolean;
  readonly consumer: KafkajsConsumer;
  readonly admin: KafkajsAdmin;
  readonly watermarks: KafkajsWatermarks;
  readonly events: ClientEvents;
  /** Nothing is to be read any more. */
  readonly stopped: () => boolean;
  /** The member is leaving. */
  readonly closing: () => boolean;
}

const firstPauseMs = 100;
const longestPauseMs = 2_000;
// What kafkajs commits by itself for a partition whose offset the broker has no more: "the earliest".
const earliest = -2n;

/** At its member's expected position, never sent back. */
export const memberAt = ({ topic, partition }: TopicPartition, next: bigint): KafkajsMember => ({
  ...{ topic, partition, next },
  sought: 0,
  passedTo: undefined,
});

export function createKafkajsMembership(options: KafkajsMembershipOptions): KafkajsMembership {
  const { groupId, fromBeginning, consumer, admin, watermarks, events, stopped, closing } = options;
  let members = new Map<string, KafkajsMember>();
  let assigned: readonly TopicPartition[] = [];
  let generation = 0;
  let handingBack: Promise<void> | undefined;

  function lost(): void {
    generation++;
    events.lost(assigned);
    assigned = [];
    members = new Map();
    handingBack = undefined;
  }

  async function committed(partitions: readonly TopicPartition[]): Promise<readonly Assignment[]> {
    const topics = [...new Set(partitions.map(({ topic }) => topic))];
    const found = new Map<string, bigint>();
    for (const { topic, partitions: offsets } of await admin.fetchOffsets({ groupId, topics }))
      for (const { partition, offset } of offsets) found.set(nameOf({ topic, partition }), BigInt(offset));
    return Promise.all(
      partitions.map(async (partition) => {
        const offset = found.get(nameOf(partition));
        if (offset !== undefined && offset >= 0n) return { ...partition, start: offset };
        const { low, high } = await watermarks(partition);
        return { ...partition, start: fromBeginning || offset === earliest ? low : high };
      }),
    );
  }

  /** Tries until it succeeds: whether a broker answers at all is watched by the source. */
  async function startsOf(
    mine: number,
    partitions: readonly TopicPartition[],
  ): Promise<readonly Assignment[] | undefined> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        return await committed(partitions);
      } catch (error) {
        if (mine !== generation || closing()) return undefined;
        if (isFinal(error)) {
          events.failed(error as Error);
          return undefined;
        }
        events.warn(`Committed offsets could not be read: ${(error as Error).message}`);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
      if (mine !== generation || closing()) return undefined;
    }
  }

  async function begin(mine: number, partitions: readonly TopicPartition[]): Promise<void> {
    const starts = await startsOf(mine, partitions);
    if (starts === undefined || mine !== generation || closing()) return;
    let allowed: readonly Assignment[];
    try {
      allowed = await events.assigned(starts);
    } catch (error) {
      return events.failed(error as Error);
    }
    if (mine !== generation || closing()) return;
    for (const { topic, partition, start } of allowed) {
      const next = start ?? 0n;
      members.set(nameOf({ topic, partition }), memberAt({ topic, partition }, next));
      consumer.seek({ topic, partition, offset: String(next) });
      if (!stopped()) consumer.resume([{ topic, partitions: [partition] }]);
    }
  }

  return {
    async joined(assignment) {
      lost();
      if (closing()) return;
      assigned = Object.entries(assignment).flatMap(([topic, partitions]) =>
        partitions.map((partition) => ({ topic, partition })),
      );
      const mine = generation;
      try {
        for (const { topic, partition } of assigned) consumer.pause([{ topic, partitions: [partition] }]);
        if (assigned.length > 0) await begin(mine, assigned);
      } catch (error) {
        // The consumer went down meanwhile, and will join again or say that it cannot.
        if (mine === generation && !closing())
          events.warn(`The Kafka client says: ${(error as Error).message}`);
      }
    },
    handBack() {
      const leaving = assigned;
      members = new Map();
      return (handingBack ??= leaving.length === 0 ? Promise.resolve() : events.revoked(leaving));
    },
    lost,
    get: (partition) => members.get(nameOf(partition)),
    set: (member) => void members.set(nameOf(member), member),
    get generation() {
      return generation;
    },
  };
}

/** kafkajs wraps what it has tried often enough: only what lies below tells whether trying again can help. */
function isFinal(error: unknown): boolean {
  const { cause, retriable } = error as { readonly cause?: unknown; readonly retriable?: unknown };
  return typeof cause === "object" && cause !== null ? isFinal(cause) : retriable === false;
}
