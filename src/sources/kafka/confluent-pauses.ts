import { nameOf, type TopicPartition } from "./client.ts";
import type { ConfluentConsumer } from "./confluent-shapes.ts";

/**
 * Which partitions are not read on. librdkafka keeps a pause when a partition is taken away, and when it comes back: one
 * that is forgotten is never read again.
 */
export interface ConfluentPauses {
  /** Nothing is read on, of partitions that are assigned later either. */
  hold(): void;
  /**
   * Reads on. A pause throws away what was fetched ahead, so the partitions that had no turn in this round go first: otherwise those
   * that answer first would be read again and again, and some others never.
   */
  release(): void;
  /** Lets the others follow those that went first. */
  follow(): void;
  /** A partition gave records, or has no more. */
  gave(partition: TopicPartition): void;
  /** One partition, until it is woken or taken away. */
  rest(partition: TopicPartition, rests: boolean): void;
  /** These were just assigned. */
  assigned(partitions: readonly TopicPartition[]): void;
  /** These are about to be taken away. */
  unassigning(partitions: readonly TopicPartition[]): void;
}

export function createConfluentPauses(
  consumer: () => ConfluentConsumer,
  warn: (message: string) => void,
): ConfluentPauses {
  const resting = new Set<string>();
  const paused = new Set<string>();
  const given = new Set<string>();
  let holding = false;
  /** Those that go first, while they do. */
  let first: ReadonlySet<string> | undefined;

  function bring(partitions: readonly TopicPartition[], wanted: (name: string) => boolean): void {
    const differ = partitions.filter(
      (partition) => wanted(nameOf(partition)) !== paused.has(nameOf(partition)),
    );
    const toPause = differ.filter((partition) => wanted(nameOf(partition)));
    const toResume = differ.filter((partition) => !wanted(nameOf(partition)));
    try {
      if (toPause.length > 0) consumer().pause(toPause);
      for (const partition of toPause) paused.add(nameOf(partition));
      if (toResume.length > 0) consumer().resume(toResume);
      for (const partition of toResume) paused.delete(nameOf(partition));
    } catch (error) {
      warn(`Partitions could not be paused or resumed: ${(error as Error).message}`);
    }
  }

  const wanted = (name: string): boolean =>
    holding || resting.has(name) || (first !== undefined && !first.has(name));

  return {
    hold() {
      holding = true;
      bring(consumer().assignments(), wanted);
    },
    release() {
      holding = false;
      const all = consumer().assignments();
      const hungry = all.map(nameOf).filter((name) => !given.has(name) && !resting.has(name));
      // A round is over when each has had its turn.
      if (hungry.length === 0) given.clear();
      first = hungry.length === 0 ? undefined : new Set(hungry);
      bring(all, wanted);
    },
    follow() {
      if (first === undefined) return;
      first = undefined;
      bring(consumer().assignments(), wanted);
    },
    gave: (partition) => void given.add(nameOf(partition)),
    rest(partition, rests) {
      if (rests) resting.add(nameOf(partition));
      else resting.delete(nameOf(partition));
      bring([partition], wanted);
    },
    assigned: (partitions) => bring(partitions, wanted),
    unassigning(partitions) {
      for (const partition of partitions) resting.delete(nameOf(partition));
      bring(partitions, () => false);
    },
  };
}
