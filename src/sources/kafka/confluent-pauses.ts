import { nameOf, type TopicPartition } from "./client.ts";
import type { ConfluentConsumer } from "./confluent-shapes.ts";

/**
 * Which partitions are not read on. librdkafka keeps a pause when a partition is taken away, and when it comes back: one
 * that is forgotten is never read again.
 */
export interface ConfluentPauses {
  /** All partitions, those assigned later too, or only those that rest. */
  holdAll(hold: boolean): void;
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
  let holding = false;

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

  const wanted = (name: string): boolean => holding || resting.has(name);

  return {
    holdAll(hold) {
      holding = hold;
      bring(consumer().assignments(), wanted);
    },
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
