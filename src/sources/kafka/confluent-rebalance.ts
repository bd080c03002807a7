import { nameOf, type Assignment, type ClientEvents, type TopicPartition } from "./client.ts";
import {
  call,
  confluentCodes,
  type ConfluentConsumer,
  type ConfluentError,
  type ConfluentPartition,
} from "./confluent-shapes.ts";
import type { Turns } from "./confluent-turns.ts";

/** Answers librdkafka's rebalances, eager and cooperative, one after another. */
export interface ConfluentRebalance {
  /** To be called by `rebalance_cb`. librdkafka waits for the answer, which may come later. */
  on(consumer: ConfluentConsumer, error: ConfluentError, partitions: readonly TopicPartition[]): void;
  /** Remembers that the source rests one partition. */
  pausedOne(partition: TopicPartition, paused: boolean): void;
  /** Those that the source does not rest. */
  unpaused(partitions: readonly ConfluentPartition[]): readonly ConfluentPartition[];
  /** Resolves when everything so far is answered. */
  answered(): Promise<void>;
}

const committedTimeoutMs = 5_000;
const committedTries = 3;

export function createConfluentRebalance(
  events: ClientEvents,
  turns: Turns,
  state: { readonly closing: () => boolean; readonly paused: () => boolean },
): ConfluentRebalance {
  const resting = new Set<string>();
  let last: Promise<void> = Promise.resolve();

  const cooperative = (consumer: ConfluentConsumer): boolean =>
    consumer.rebalanceProtocol() === "COOPERATIVE";

  async function assign(consumer: ConfluentConsumer, partitions: readonly TopicPartition[]): Promise<void> {
    const starts = state.closing() ? [] : await begin(consumer, partitions);
    const given = starts.map(({ topic, partition, start }) =>
      start === undefined ? { topic, partition } : { topic, partition, offset: Number(start) },
    );
    await turns.between(() => {
      for (const partition of partitions) resting.delete(nameOf(partition));
      if (cooperative(consumer)) consumer.incrementalAssign(given);
      else consumer.assign(given);
      if (state.paused() && given.length > 0) consumer.pause(given);
    });
  }

  /** Where to begin, as the source says; nothing if it must not begin. */
  async function begin(
    consumer: ConfluentConsumer,
    partitions: readonly TopicPartition[],
  ): Promise<readonly Assignment[]> {
    const found = await committed(consumer, partitions);
    try {
      return await events.assigned(found);
    } catch (error) {
      events.failed(error as Error);
      return [];
    }
  }

  async function committed(
    consumer: ConfluentConsumer,
    partitions: readonly TopicPartition[],
  ): Promise<readonly Assignment[]> {
    const asked = partitions.map(({ topic, partition }) => ({ topic, partition }));
    for (let tries = 1; ; tries++) {
      try {
        const found = await call<readonly ConfluentPartition[]>((done) =>
          consumer.committed(asked, committedTimeoutMs, done),
        );
        events.alive();
        return found.map(({ topic, partition, offset }) => ({
          ...{ topic, partition },
          start: typeof offset === "number" && offset >= 0 ? BigInt(offset) : undefined,
        }));
      } catch (error) {
        // The client then looks for itself, and the first record tells where it began.
        if (tries === committedTries) return asked.map((partition) => ({ ...partition, start: undefined }));
        events.warn(`Committed offsets could not be read: ${(error as Error).message}`);
      }
    }
  }

  async function revoke(
    consumer: ConfluentConsumer,
    partitions: readonly TopicPartition[],
    lost: boolean,
  ): Promise<void> {
    if (lost) events.lost(partitions);
    else if (!state.closing()) await events.revoked(partitions);
    await turns.between(() => {
      if (cooperative(consumer)) consumer.incrementalUnassign(partitions);
      else consumer.unassign();
    });
  }

  return {
    on(consumer, error, partitions) {
      // Known inside the callback only.
      const lost = consumer.assignmentLost();
      const answer = async (): Promise<void> => {
        if (error.code === confluentCodes.assignPartitions) return assign(consumer, partitions);
        if (error.code === confluentCodes.revokePartitions) return revoke(consumer, partitions, lost);
        events.warn(`The group could not be balanced: ${error.message}`);
        return turns.between(() => void consumer.unassign());
      };
      // When it closes librdkafka waits for the answer on its own thread: nothing may stand before it.
      if (state.closing()) last = answer();
      else last = last.then(answer);
      last = last.catch((failure: unknown) => {
        if (!state.closing()) events.warn(`A rebalance went wrong: ${(failure as Error).message}`);
      });
    },
    pausedOne(partition, paused) {
      if (paused) resting.add(nameOf(partition));
      else resting.delete(nameOf(partition));
    },
    unpaused: (partitions) => partitions.filter((partition) => !resting.has(nameOf(partition))),
    answered: () => last,
  };
}
