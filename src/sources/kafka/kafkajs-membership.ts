import { nameOf, type Assignment, type ClientEvents, type TopicPartition } from "./client.ts";
import type { KafkajsAdmin, KafkajsConsumer } from "./kafkajs-shapes.ts";
import type { KafkajsWatermarks } from "./kafkajs-watermarks.ts";

/** One partition of the present generation. `next`: where the next batch must begin. */
export interface KafkajsMember extends TopicPartition {
  readonly next: bigint;
  /** Sought once because a batch began elsewhere. */
  readonly sought: boolean;
}

/**
 * Who owns what, as kafkajs tells it. It joins again by itself and tells only afterwards, and batches it fetched before
 * may still come: so each generation begins with a seek to the group's committed offset, and a batch that does not begin
 * where it must is not taken.
 */
export interface KafkajsMembership {
  /** A new generation has begun with these partitions. */
  joined(assignment: Readonly<Record<string, readonly number[]>>): Promise<void>;
  /** The generation is about to end: what is in hand is finished in the time there is. Twice is harmless. */
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
  readonly stopped: () => boolean;
}

const tries = 5;
const firstPauseMs = 200;

export function createKafkajsMembership(options: KafkajsMembershipOptions): KafkajsMembership {
  const { groupId, fromBeginning, consumer, admin, watermarks, events, stopped } = options;
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
        return { ...partition, start: fromBeginning ? low : high };
      }),
    );
  }

  async function begin(mine: number, partitions: readonly TopicPartition[]): Promise<void> {
    let starts: readonly Assignment[] | undefined;
    for (let tried = 1; starts === undefined; tried++) {
      try {
        starts = await committed(partitions);
      } catch (error) {
        if (mine !== generation) return;
        if (tried === tries) return events.failed(error as Error);
        events.warn(`Committed offsets could not be read: ${(error as Error).message}`);
        await new Promise((resolve) => setTimeout(resolve, firstPauseMs * 2 ** tried));
      }
    }
    if (mine !== generation) return;
    let allowed: readonly Assignment[];
    try {
      allowed = await events.assigned(starts);
    } catch (error) {
      return events.failed(error as Error);
    }
    if (mine !== generation) return;
    for (const { topic, partition, start } of allowed) {
      const next = start ?? 0n;
      members.set(nameOf({ topic, partition }), { topic, partition, next, sought: false });
      consumer.seek({ topic, partition, offset: String(next) });
      if (!stopped()) consumer.resume([{ topic, partitions: [partition] }]);
    }
  }

  return {
    async joined(assignment) {
      lost();
      assigned = Object.entries(assignment).flatMap(([topic, partitions]) =>
        partitions.map((partition) => ({ topic, partition })),
      );
      const mine = generation;
      try {
        for (const { topic, partition } of assigned) consumer.pause([{ topic, partitions: [partition] }]);
        if (assigned.length > 0) await begin(mine, assigned);
      } catch (error) {
        // The consumer went down meanwhile, and will join again or say that it cannot.
        if (mine === generation) events.warn(`The Kafka client says: ${(error as Error).message}`);
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
