import { hasCode } from "../../errors.ts";
import type { Message } from "../../message/message.ts";
import type { Intake } from "../source.ts";
import {
  nameOf,
  type Assignment,
  type KafkaRecord,
  type KafkaSession,
  type TopicPartition,
} from "./client.ts";
import { createCursorGate } from "./cursor-gate.ts";
import type { CursorReader, PartitionCursor, TakenPartition } from "./cursor-reader.ts";

/** The partitions of a source whose records are applied by cursors. */
export interface CursorPartitions {
  /** Rejects with why nothing can be read. */
  start(session: KafkaSession): Promise<void>;
  /**
   * Takes partitions with their cursors; waits for database and broker. Those that are given back meanwhile are left out.
   * Rejects with `log-changed` where a person must agree first.
   */
  take(partitions: readonly Assignment[]): Promise<readonly TakenPartition[]>;
  /** These are given back: they are not taken any more. */
  leave(partitions: readonly TopicPartition[]): void;
  /** A partition went back to this record while it was read: ends the source. */
  wentBack(cursor: PartitionCursor, record: KafkaRecord, next: bigint): void;
  read(cursor: PartitionCursor, record: KafkaRecord): Message;
  /** Runs `work` in its turn, once it is known that what these topics gave came from the logs that are read. */
  pass(topics: Iterable<string>, work: () => Promise<void> | void): Promise<void>;
  stop(): void;
}

const takeAgainMs = 1_000;
// A topic that is made anew under a reader is told also while nothing comes of it.
const lookEveryMs = 10_000;

export function createCursorPartitions(reader: CursorReader, intake: () => Intake): CursorPartitions {
  // Who is slow to take a partition must not take it from the one it was given to since.
  const wanted = new Map<string, Assignment>();
  let opened: (session: KafkaSession) => void = () => undefined;
  const session = new Promise<KafkaSession>((resolve) => (opened = resolve));
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const isWanted = (partition: Assignment): boolean =>
    !stopped && wanted.get(nameOf(partition)) === partition;

  async function takeOne(partition: Assignment): Promise<TakenPartition | undefined> {
    const at = await session;
    while (isWanted(partition)) {
      try {
        return await reader.take(at, partition);
      } catch (error) {
        if (isFinal(error)) throw error;
        intake().warn(`${nameOf(partition)} is not read before database and broker answer: ${textOf(error)}`);
        await new Promise((resolve) => setTimeout(resolve, takeAgainMs));
      }
    }
    return undefined;
  }

  /** Whether a broker answers at all is watched elsewhere. */
  async function look(at: KafkaSession): Promise<void> {
    try {
      await reader.check(at);
    } catch (error) {
      if (!stopped && isFinal(error)) intake().end(error as Error);
    }
  }

  const gate = createCursorGate(async (topic) => {
    const at = await session;
    while (!stopped) {
      try {
        await reader.check(at, [topic]);
        return true;
      } catch (error) {
        if (stopped) break;
        if (isFinal(error)) {
          intake().end(error as Error);
          break;
        }
        intake().warn(`${topic} is not read on before the broker tells its id: ${textOf(error)}`);
        await new Promise((resolve) => setTimeout(resolve, takeAgainMs));
      }
    }
    return false;
  });

  return {
    async start(at) {
      try {
        await reader.check(at);
        timer = setInterval(() => void look(at), lookEveryMs);
      } catch (error) {
        stopped = true;
        throw error;
      } finally {
        opened(at);
      }
    },
    async take(partitions) {
      for (const partition of partitions) wanted.set(nameOf(partition), partition);
      const taken: (readonly [Assignment, TakenPartition])[] = [];
      for (const partition of partitions) {
        const one = await takeOne(partition);
        if (one !== undefined) taken.push([partition, one]);
      }
      return taken.flatMap(([partition, one]) => (isWanted(partition) ? [one] : []));
    },
    leave(partitions) {
      for (const partition of partitions) wanted.delete(nameOf(partition));
    },
    wentBack(cursor, record, next) {
      const end = async (): Promise<void> => {
        const why = await reader
          .wentBack(await session, cursor, record, next)
          .catch((error: unknown) => error as Error);
        if (!stopped) intake().end(why);
      };
      void end();
    },
    read: (cursor, record) => reader.read(cursor, record),
    pass: (topics, work) => gate.pass(reader.tells() ? topics : [], work),
    stop() {
      stopped = true;
      gate.stop();
      clearInterval(timer);
    },
  };
}

const isFinal = (error: unknown): boolean => hasCode(error, "log-changed") || hasCode(error, "source-failed");

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
