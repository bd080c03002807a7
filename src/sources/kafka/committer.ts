import type { Position } from "./client.ts";
import type { OwnedPartition } from "./owned-partition.ts";
import { within } from "./within.ts";

/** Tells the broker how far partitions are settled. Every commit may be lost or refused: then more is read again. */
export interface Committer {
  /** Something was settled: commits within the interval. */
  touch(): void;
  /** Commits now what is settled of these partitions. Never rejects, and takes no longer than `timeoutMs`. */
  flush(partitions: readonly OwnedPartition[], timeoutMs: number): Promise<void>;
  stop(): void;
}

export interface CommitterOptions {
  readonly intervalMs: number;
  readonly owned: () => Iterable<OwnedPartition>;
  readonly send: (positions: readonly Position[]) => Promise<void>;
  readonly refused: (error: unknown) => void;
}

// A client may hold a commit back for as long as the group's coordinator is away; the next ones must not wait behind it.
const answerTimeoutMs = 10_000;

export function createCommitter({ intervalMs, owned, send, refused }: CommitterOptions): Committer {
  let timer: NodeJS.Timeout | undefined;
  let last: Promise<void> = Promise.resolve();
  let stopped = false;

  /** One after another, so that an older position never arrives after a newer one. */
  function commit(partitions: Iterable<OwnedPartition>): Promise<void> {
    last = last.then(async () => {
      const due = [...partitions].filter((partition) => partition.state !== "gone" && isDue(partition));
      if (due.length === 0) return;
      const positions = due.map(({ topic, partition, log }) => ({
        ...{ topic, partition },
        offset: log.settledTo() as bigint,
      }));
      try {
        // Dying here, or before the broker has it, only means that these records are read again.
        await answerTo(send(positions), due);
        due.forEach((partition, i) => (partition.committed = (positions[i] as Position).offset));
      } catch (error) {
        refused(error);
        if (!stopped) touch();
      }
    });
    return last;
  }

  async function answerTo(answer: Promise<void>, due: readonly OwnedPartition[]): Promise<void> {
    if (await within(answer, answerTimeoutMs)) return;
    // It may still arrive, after a newer one: then the broker has an older position, and is told again.
    const unknown = (): void => {
      for (const partition of due) partition.committed = undefined;
      touch();
    };
    answer.then(unknown, unknown);
    throw new Error(`It did not answer within ${answerTimeoutMs} ms.`);
  }

  function touch(): void {
    if (timer !== undefined || stopped) return;
    timer = setTimeout(() => {
      timer = undefined;
      void commit(owned());
    }, intervalMs);
  }

  return {
    touch,
    async flush(partitions, timeoutMs) {
      let late: NodeJS.Timeout | undefined;
      await Promise.race([
        commit(partitions),
        new Promise<void>((resolve) => (late = setTimeout(resolve, timeoutMs))),
      ]);
      clearTimeout(late);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

const isDue = ({ log, committed }: OwnedPartition): boolean => {
  const settled = log.settledTo();
  return settled !== undefined && settled !== committed;
};
