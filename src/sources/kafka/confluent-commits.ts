import { nameOf, type Position } from "./client.ts";
import type { ConfluentConsumer, ConfluentError, ConfluentPartition } from "./confluent-shapes.ts";

/**
 * Commits that take no thread while they wait: the client's own promise of a commit blocks one of Node's few, and with
 * the coordinator away that can be for long.
 */
export interface ConfluentCommits {
  /** Resolves with the broker's answer; rejects if it refused. */
  send(consumer: ConfluentConsumer, positions: readonly Position[]): Promise<void>;
  /** Resolves when no answer is owed; they come with the records that are asked for. */
  settled(): Promise<void>;
  /** To be called by `offset_commit_cb`. */
  answered(error: ConfluentError | undefined, partitions: readonly ConfluentPartition[]): void;
}

interface Sent {
  readonly names: ReadonlySet<string>;
  readonly done: (error: ConfluentError | undefined) => void;
}

// More were forgotten by the client: an answer is not owed for each.
const mostUnanswered = 16;

export function createConfluentCommits(): ConfluentCommits {
  let sent: readonly Sent[] = [];
  let waiting: (() => void)[] = [];

  function keep(list: readonly Sent[]): void {
    sent = list;
    if (sent.length > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  }

  return {
    send: (consumer, positions) =>
      new Promise((resolve, reject) => {
        const list = positions.map(({ topic, partition, offset }) => ({
          ...{ topic, partition },
          offset: Number(offset),
        }));
        const done = (error: ConfluentError | undefined): void => {
          if (error === undefined) resolve();
          else reject(error);
        };
        // Throws where the client is not connected: then no answer comes.
        consumer.commit(list);
        keep([...sent.slice(-mostUnanswered), { names: new Set(list.map(textOf)), done }]);
      }),
    settled: () => (sent.length === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    answered(error, partitions) {
      const names = partitions.map(textOf);
      const found = sent.find(
        (one) => one.names.size === names.length && names.every((n) => one.names.has(n)),
      );
      if (found === undefined) return;
      keep(sent.filter((one) => one !== found));
      found.done(error);
    },
  };
}

const textOf = (partition: ConfluentPartition): string => `${nameOf(partition)}@${partition.offset}`;
