import { InboxError } from "../errors.ts";
import { showValue } from "../message/show-value.ts";
import type {
  Assignment,
  ClientEvents,
  KafkaClient,
  KafkaSession,
  Position,
} from "../sources/kafka/client.ts";
import { nameOf } from "../sources/kafka/client.ts";
import { kafka } from "../sources/kafka/kafka-source.ts";
import type { KafkaOptions } from "../sources/kafka/options.ts";
import type { Intake, Source } from "../sources/source.ts";
import type { ReplaySource } from "./replay-source.ts";
import { wrappedSource } from "./wrapped-source.ts";

/** What of a Kafka client's administration is asked: `kafka.admin()`, connected, of kafkajs or of confluent's `KafkaJS`. */
export interface KafkaOffsetsAdmin {
  fetchTopicOffsets(
    topic: string,
  ): Promise<readonly { readonly partition: number; readonly low: string; readonly high: string }[]>;
  fetchTopicOffsetsByTimestamp(
    topic: string,
    timestamp: number,
  ): Promise<readonly { readonly partition: number; readonly offset: string }[]>;
}

export interface ReplayKafkaOptions extends Omit<KafkaOptions, "groupId" | "order"> {
  /** Tells where the topics begin and end; it stays open and stays yours. */
  readonly admin: KafkaOffsetsAdmin;
  /** A group of the replay's own, never that of a consumer that runs: its offsets are moved. */
  readonly groupId: string;
  /** The first record, the first one of this time or later, or offsets by topic and partition. Default `beginning`. */
  readonly from?: "beginning" | Date | Readonly<Record<string, Readonly<Record<number, bigint>>>> | undefined;
}

interface Range {
  readonly start: bigint;
  /** The first offset that is not part of it: the partition's end when the replay began. */
  readonly end: bigint;
}

/**
 * Records of Kafka topics, from a place on to the end as it was when the replay began. A run that follows a killed one
 * goes on at the group's committed offsets. Rejects with `source-failed` if the broker does not answer.
 */
export function replayKafka(options: ReplayKafkaOptions): ReplaySource {
  const { admin, from, groupId, topics } = options;
  if (from !== undefined && from !== "beginning" && typeof from !== "object")
    throw new InboxError(
      "invalid-option",
      `from must be "beginning", a Date or offsets; got ${showValue(from)}.`,
    );
  return {
    name: `kafka:${topics.join(",")} from ${nameOfFrom(from)} by ${groupId}`,
    async open({ planning, resumes }) {
      const ranges = await rangesOf(admin, topics, from ?? "beginning");
      const state = createState(ranges, resumes && !planning);
      const source = kafka({
        ...options,
        // A plan leaves no offsets behind where a run would look for them.
        groupId: planning ? `${groupId}-plan` : groupId,
        client: boundedClient(options.client, state),
      });
      return endingSource(source, state, () =>
        source.progress().partitions.map(({ topic, partition, settledTo }) => ({
          ...{ topic, partition },
          offset: settledTo ?? -1n,
        })),
      );
    },
  };
}

/** A run from elsewhere does not go on where this one was. */
const nameOfFrom = (from: ReplayKafkaOptions["from"]): string =>
  from instanceof Date
    ? from.toISOString()
    : JSON.stringify(from ?? "beginning", (_, value: unknown) =>
        typeof value === "bigint" ? String(value) : value,
      );

async function rangesOf(
  admin: KafkaOffsetsAdmin,
  topics: readonly string[],
  from: NonNullable<ReplayKafkaOptions["from"]>,
): Promise<ReadonlyMap<string, Range>> {
  const ranges = new Map<string, Range>();
  for (const topic of topics) {
    const bounds = await admin.fetchTopicOffsets(topic);
    const times =
      from instanceof Date
        ? new Map(
            (await admin.fetchTopicOffsetsByTimestamp(topic, from.getTime())).map(
              ({ partition, offset }) => [partition, BigInt(offset)] as const,
            ),
          )
        : undefined;
    for (const { partition, low, high } of bounds) {
      const [first, end] = [BigInt(low), BigInt(high)];
      // A negative one: nothing is as young as that.
      const asked =
        times === undefined
          ? from === "beginning" || from instanceof Date
            ? first
            : (from[topic]?.[partition] ?? first)
          : (times.get(partition) ?? end);
      const start = asked < 0n ? end : asked < first ? first : asked;
      ranges.set(nameOf({ topic, partition }), { start, end });
    }
  }
  return ranges;
}

interface State {
  readonly ranges: ReadonlyMap<string, Range>;
  /** Where a partition is to be read from. */
  startOf(assignment: Assignment): bigint | undefined;
  committed(positions: readonly Position[]): void;
  /** Called when something may have come to its end. */
  check: () => void;
}

function createState(ranges: ReadonlyMap<string, Range>, resumes: boolean): State {
  const own = new Set<string>();
  return {
    ranges,
    startOf(assignment) {
      const name = nameOf(assignment);
      const range = ranges.get(name);
      // A partition that was added meanwhile is not part of it.
      if (range === undefined) return assignment.start;
      // Offsets of an earlier replay say nothing of this one, unless it goes on with that.
      const known = resumes || own.has(name) ? assignment.start : undefined;
      return known !== undefined && known > range.start ? known : range.start;
    },
    committed: (positions) => positions.forEach((position) => own.add(nameOf(position))),
    check: () => undefined,
  };
}

/** The client, reading from where the ranges begin and handing over nothing beyond their ends. */
function boundedClient(client: KafkaClient, state: State): KafkaClient {
  return {
    ...client,
    async open(request, events) {
      const opened: { session?: KafkaSession } = {};
      const past = new Set<string>();
      const endOf = (name: string): bigint => state.ranges.get(name)?.end ?? 0n;

      /** The rest of the partition is read no more. */
      function close(position: Position): void {
        const name = nameOf(position);
        if (past.has(name)) return;
        past.add(name);
        opened.session?.pause(position);
      }

      const bounded: ClientEvents = {
        ...events,
        assigned(partitions) {
          for (const partition of partitions) past.delete(nameOf(partition));
          return events.assigned(
            partitions.map((partition) => ({ ...partition, start: state.startOf(partition) })),
          );
        },
        async records(records) {
          const within = records.filter((record) => record.offset < endOf(nameOf(record)));
          if (within.length > 0) await events.records(within);
          for (const record of records) {
            const end = endOf(nameOf(record));
            if (record.offset + 1n < end) continue;
            if (end > 0n) events.readTo({ ...placeOf(record), offset: end });
            if (record.offset >= end) close(record);
          }
          state.check();
        },
        readTo(position) {
          const end = endOf(nameOf(position));
          events.readTo(position.offset > end ? { ...position, offset: end } : position);
          state.check();
        },
      };
      const session = await client.open(request, bounded);
      opened.session = session;
      return {
        ...session,
        async commit(positions) {
          await session.commit(positions);
          state.committed(positions);
        },
      };
    },
  };
}

const placeOf = ({ topic, partition }: Position): { topic: string; partition: number } => ({
  topic,
  partition,
});

/** The source, which ends when everything within the ranges of its partitions is settled. */
function endingSource(source: Source, state: State, settled: () => readonly Position[]): Source {
  let intake: Intake | undefined;
  let ended = false;

  state.check = () => {
    if (ended || intake === undefined) return;
    const positions = settled();
    const through = (position: Position): boolean => {
      const range = state.ranges.get(nameOf(position));
      return range === undefined || position.offset >= range.end || range.start >= range.end;
    };
    const nothing = [...state.ranges.values()].every(({ start, end }) => start >= end);
    if (!nothing && (positions.length === 0 || !positions.every(through))) return;
    ended = true;
    intake.end();
  };

  return wrappedSource(source, {
    async start(given) {
      await source.start(given);
      intake = given;
      state.check();
    },
    async settle(settlements) {
      await source.settle(settlements);
      state.check();
    },
  });
}
