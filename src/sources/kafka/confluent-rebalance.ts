import type { Assignment, ClientEvents, TopicPartition } from "./client.ts";
import type { ConfluentPauses } from "./confluent-pauses.ts";
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
  /** Resolves when everything so far is answered. */
  answered(): Promise<void>;
}

const committedTimeoutMs = 5_000;
const committedTries = 3;

export function createConfluentRebalance(
  events: ClientEvents,
  turns: Turns,
  pauses: ConfluentPauses,
  closing: () => boolean,
): ConfluentRebalance {
  let last: Promise<void> = Promise.resolve();

  const cooperative = (consumer: ConfluentConsumer): boolean =>
    consumer.rebalanceProtocol() === "COOPERATIVE";

  async function assign(consumer: ConfluentConsumer, partitions: readonly TopicPartition[]): Promise<void> {
    const starts = closing() ? [] : await begin(consumer, partitions);
    const given = starts.map(({ topic, partition, start }) =>
      start === undefined ? { topic, partition } : { topic, partition, offset: Number(start) },
    );
    await turns.between(() => {
      if (cooperative(consumer)) consumer.incrementalAssign(given);
      else consumer.assign(given);
      pauses.assigned(given);
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
    else if (!closing()) await events.revoked(partitions);
    await turns.between(() => {
      if (!closing()) pauses.unassigning(partitions);
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
      if (closing()) last = answer();
      else last = last.then(answer);
      last = last.catch((failure: unknown) => {
        if (!closing()) events.warn(`A rebalance went wrong: ${(failure as Error).message}`);
      });
    },
    answered: () => last,
  };
}
