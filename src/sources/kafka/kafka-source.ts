import { InboxError } from "../../errors.ts";
import { createItemReader } from "../read-items.ts";
import type { Intake, LogPosition, Source } from "../source.ts";
import { createBrokerWatch, type BrokerWatch } from "./broker-watch.ts";
import {
  nameOf,
  type Assignment,
  type ClientEvents,
  type KafkaRecord,
  type KafkaSession,
  type Position,
} from "./client.ts";
import { createCommitter } from "./committer.ts";
import { createCursorPartitions } from "./cursor-partitions.ts";
import { createCursorReader, type TakenPartition } from "./cursor-reader.ts";
import { createHandOver, type HandOver, type Queued } from "./hand-over.ts";
import { kafkaSettings, type KafkaOptions } from "./options.ts";
import {
  createHands,
  createOwnedPartition,
  drained,
  type Hand,
  type OwnedPartition,
} from "./owned-partition.ts";
import { createRetries } from "./retries.ts";
import { recordTime } from "./record-time.ts";
import { tellKept } from "./tell-kept.ts";

/** How far the source has come in one partition. */
export interface PartitionProgress {
  readonly topic: string;
  readonly partition: number;
  /** Everything below is settled. */
  readonly settledTo: bigint | undefined;
  /** What the broker is known to have. */
  readonly committed: bigint | undefined;
  /** Records that were read and have a message that is not settled. */
  readonly unsettled: number;
  /** It is not read on: its first unsettled record lies too far behind. */
  readonly paused: boolean;
}

export interface KafkaProgress {
  readonly partitions: readonly PartitionProgress[];
  /** Messages that wait in memory to be handed over again. */
  readonly waiting: number;
  /** Records that were no messages and needed no handling, by reason. */
  readonly ignored: Readonly<Record<string, number>>;
}

export interface KafkaSource extends Source {
  progress(): KafkaProgress;
}

// The last commit must not hold a shutdown up when the broker is away.
const lastCommitMs = 5_000;
const takeAgainMs = 1_000;

/**
 * Records of Kafka topics, as a member of a consumer group. Offsets are committed after their messages are settled, up to
 * the first one that is not; a partition that is taken away finishes what is in hand first. Throws `invalid-option`;
 * `start` rejects with `source-failed` if no broker answers or a topic is not there.
 */
export function kafka(options: KafkaOptions): KafkaSource {
  const settings = kafkaSettings(options);
  const { client, topics, groupId, tenant, maxAhead, revokeTimeoutMs } = settings;
  const items = settings.format && createItemReader(settings.format);
  const cursors =
    settings.cursor &&
    createCursorPartitions(
      createCursorReader(settings.cursor, tenant, topics, client.name, () => intake),
      () => intake,
    );
  const owned = new Map<string, OwnedPartition>();
  const hands = createHands();
  const retries = createRetries(
    (hand) => again(hand, true),
    () => handOver.freed(),
  );
  const handOver: HandOver = createHandOver(hands, () => intake, retries);
  let intake: Intake;
  let session: KafkaSession | undefined;
  let watch: BrokerWatch | undefined;
  let stopping: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  let stopped = false;

  const committer = createCommitter({
    intervalMs: settings.commitIntervalMs,
    owned: () => owned.values(),
    async send(positions) {
      await session?.commit(positions);
      watch?.alive();
    },
    refused: (error) => intake.warn(`The broker did not take a commit of offsets: ${textOf(error)}`),
  });

  /** Past what waits: what was handed over once is in the runner's bounds already. */
  function again(hand: Hand, redelivered: boolean): void {
    if (stopped || hand.partition.state !== "open") return;
    void intake.deliver([hands.give(hand, redelivered)]);
  }

  function take(record: KafkaRecord, queue: Queued[]): void {
    const partition = current(record);
    if (partition === undefined) return;
    const { topic, offset, key, value, headers } = record;
    const received =
      cursors !== undefined && partition.cursor !== undefined
        ? [cursors.read(partition.cursor, record)]
        : (items?.read({ body: value, headers, key, channel: topic, tenant }) ?? []);
    const { previous } = partition;
    partition.previous = offset;
    const entry = partition.log.add(offset, received.length);
    const redelivered = partition.suspects > 0;
    if (redelivered) partition.suspects--;
    const brokerTime = recordTime(record.timestamp);
    for (const message of received)
      queue.push({ hand: { partition, entry, received: message, previous, brokerTime }, redelivered });
    if (received.length === 0) committer.touch();
    pauseOrResume(partition);
  }

  /** The partition a record belongs to, if it may be handed over. */
  function current(record: KafkaRecord): OwnedPartition | undefined {
    const name = nameOf(record);
    const partition = owned.get(name);
    if (partition === undefined || partition.state !== "open") return undefined;
    const next = partition.log.next();
    if (next === undefined || record.offset >= next) return partition;
    if (partition.cursor !== undefined) {
      retire(partition);
      cursors?.wentBack(partition.cursor, record, next);
      return undefined;
    }
    // The log is not the one that was read, or has lost its end: what is known of it holds no more.
    intake.warn(
      `${name} went back from offset ${next} to ${record.offset}: the topic was made anew, or its offsets were reset.`,
    );
    retire(partition);
    const restarted = createOwnedPartition({ ...partition, start: record.offset }, 0, partition.position);
    owned.set(name, restarted);
    return restarted;
  }

  function retire(partition: OwnedPartition): void {
    partition.state = "gone";
    retries.forget(partition);
    if (owned.get(nameOf(partition)) === partition) owned.delete(nameOf(partition));
  }

  function pauseOrResume(partition: OwnedPartition): void {
    const { tracked } = partition.log;
    if (!partition.paused && tracked >= maxAhead) {
      partition.paused = true;
      session?.pause(partition);
      intake.warn(
        `${nameOf(partition)} is not read on: ${maxAhead} records wait behind one that is not settled.`,
      );
    } else if (partition.paused && tracked <= maxAhead / 2 && partition.state === "open" && !stopped) {
      partition.paused = false;
      session?.resume(partition);
    }
  }

  /** The right to apply, where strict order asks for it; waits for the database. `undefined`: the source is stopping. */
  async function takeLogs(
    partitions: readonly Assignment[],
  ): Promise<readonly (LogPosition | undefined)[] | undefined> {
    const taken: (LogPosition | undefined)[] = [];
    for (const partition of settings.strict ? partitions : []) {
      const log = `kafka:${groupId}/${nameOf(partition)}`;
      for (let found: LogPosition | undefined; found === undefined;) {
        if (stopped) return undefined;
        try {
          found = await intake.takeLog?.(log);
          if (found === undefined) throw new Error("Strict order needs a run of an inbox.");
          taken.push(found);
        } catch (error) {
          intake.warn(`${log} is not read before the database answers: ${textOf(error)}`);
          await new Promise((resolve) => setTimeout(resolve, takeAgainMs));
        }
      }
    }
    return taken;
  }

  /** The partitions that were taken with their cursors, and where reading begins. */
  function ownCursors(taken: readonly TakenPartition[]): readonly Assignment[] {
    for (const { cursor, assignment } of taken) {
      const old = owned.get(nameOf(assignment));
      if (old !== undefined) retire(old);
      const suspects = cursor.applied === undefined ? 0 : intake.facts.maxInHand;
      const partition = createOwnedPartition(assignment, suspects, undefined, cursor);
      // The group is told how far it is, though nobody reads by that.
      partition.committed = undefined;
      owned.set(nameOf(assignment), partition);
    }
    return taken.map(({ assignment }) => assignment);
  }

  /** A position that the log does not have is no error to a client, which then begins elsewhere. */
  async function checkLog({ start, ...partition }: Assignment): Promise<void> {
    if (start === undefined || session === undefined) return;
    try {
      const { low, high } = await session.watermarks(partition);
      const name = nameOf(partition);
      if (start < low)
        intake.warn(
          `${name} begins at offset ${low}, and the group had come to ${start}: what was between is deleted, and nobody has handled it.`,
        );
      if (start > high)
        intake.warn(
          `${name} ends at offset ${high}, and the group had come to ${start}: the topic was made anew, or has lost its end.`,
        );
    } catch {
      // Whether a broker answers is watched elsewhere.
    }
  }

  async function handOn(records: readonly KafkaRecord[]): Promise<void> {
    if (stopped) return;
    const queue: Queued[] = [];
    for (const record of records) take(record, queue);
    await handOver.add(queue);
  }

  function readTo(position: Position): void {
    const partition = owned.get(nameOf(position));
    if (partition === undefined || partition.state !== "open") return;
    partition.log.readTo(position.offset);
    committer.touch();
  }

  const events: ClientEvents = {
    async assigned(partitions) {
      if (cursors !== undefined) return ownCursors(await cursors.take(partitions));
      const positions = await takeLogs(partitions);
      if (positions === undefined) return [];
      for (const [i, assignment] of partitions.entries()) {
        const old = owned.get(nameOf(assignment));
        if (old !== undefined) retire(old);
        // Nobody tells how many records the last owner had in hand; no more than one process takes.
        const suspects = assignment.start === undefined ? 0 : intake.facts.maxInHand;
        owned.set(nameOf(assignment), createOwnedPartition(assignment, suspects, positions[i]));
        void checkLog(assignment);
      }
      return partitions;
    },
    async revoked(partitions) {
      cursors?.leave(partitions);
      const closing = partitions.flatMap((partition) => owned.get(nameOf(partition)) ?? []);
      const startedAt = performance.now();
      for (const partition of closing) {
        partition.state = "closing";
        retries.forget(partition);
      }
      // A client without a callback for this may have little time: what is settled goes first.
      const first = committer.flush(closing, revokeTimeoutMs);
      await drained(closing, revokeTimeoutMs);
      await first;
      const leftMs = Math.max(1_000, revokeTimeoutMs - (performance.now() - startedAt));
      await committer.flush(closing, leftMs);
      for (const partition of closing) retire(partition);
    },
    lost(partitions) {
      cursors?.leave(partitions);
      for (const partition of partitions) {
        const gone = owned.get(nameOf(partition));
        if (gone !== undefined) retire(gone);
      }
    },
    async records(records) {
      watch?.alive();
      if (stopped) return;
      if (cursors === undefined) return handOn(records);
      // While they wait, their partition may be given back and taken anew: then it is read anew, too.
      const from = records.map((record) => owned.get(nameOf(record)));
      const topicsRead = new Set(records.map(({ topic }) => topic));
      await cursors.pass(topicsRead, () =>
        handOn(records.filter((record, i) => from[i] !== undefined && owned.get(nameOf(record)) === from[i])),
      );
    },
    readTo(position) {
      const from = owned.get(nameOf(position));
      const read = (): void => {
        if (owned.get(nameOf(position)) === from) readTo(position);
      };
      if (cursors === undefined) readTo(position);
      // Behind the records that were handed over before it.
      else void cursors.pass([], read);
    },
    alive: () => watch?.alive(),
    warn: (message) => intake.warn(message),
    failed(error) {
      if (!stopped) intake.end(error);
    },
  };

  function settleOne(hand: Hand, settlement: Parameters<Source["settle"]>[0][number][1]): void {
    const { partition, entry } = hand;
    // Of an assignment that is over nothing is committed: the next owner reads it again.
    if (partition.state === "gone") return;
    if (settlement.kind === "ack") {
      partition.log.settle(entry);
      pauseOrResume(partition);
      return committer.touch();
    }
    if (stopped || partition.state !== "open") return;
    if (settlement.kind === "release") return again(hand, false);
    retries.add(hand, settlement.afterMs);
  }

  async function stop(): Promise<void> {
    stopped = true;
    cursors?.stop();
    retries.stop();
    handOver.stop();
    await session?.stop();
  }

  async function close(): Promise<void> {
    await (stopping ??= stop());
    watch?.stop();
    await committer.flush([...owned.values()], lastCommitMs);
    committer.stop();
    await session?.close();
    for (const partition of [...owned.values()]) retire(partition);
  }

  async function lag(): Promise<number | undefined> {
    const members = [...owned.values()];
    // Without a partition it cannot tell: it has none yet, or others have them.
    if (session === undefined || stopped || members.length === 0) return undefined;
    const at = session;
    const each = await Promise.all(
      members.map(async (partition) => {
        const { low, high } = await at.watermarks(partition);
        const settledTo = partition.log.settledTo() ?? low;
        const waiting = high - (settledTo > low ? settledTo : low);
        return waiting > 0n ? Number(waiting) : 0;
      }),
    );
    watch?.alive();
    return each.reduce((sum, waiting) => sum + waiting, 0);
  }

  return {
    name: `kafka:${topics.join(",")}`,
    async start(given) {
      intake = given;
      await tellKept(client, topics, intake);
      watch = createBrokerWatch({
        timeoutMs: settings.brokerTimeoutMs,
        ask: async () => {
          for (const topic of topics) await session?.watermarks({ topic, partition: 0 });
        },
        warn: events.warn,
        failed: events.failed,
      });
      try {
        const facts = intake.facts;
        session = await client.open({ topics, groupId, facts, revokeTimeoutMs }, events);
        await cursors?.start(session);
      } catch (error) {
        watch.stop();
        await session?.close();
        session = undefined;
        if (error instanceof InboxError) throw error;
        throw new InboxError("source-failed", `Kafka cannot be used: ${textOf(error)}`, { cause: error });
      }
      if (stopped) await session.stop();
    },
    async settle(settlements) {
      for (const [delivery, settlement] of settlements) {
        const hand = hands.take(delivery);
        if (hand !== undefined) settleOne(hand, settlement);
      }
      handOver.freed();
    },
    stop: () => (stopping ??= stop()),
    close: () => (closing ??= close()),
    lag,
    progress: () => ({
      partitions: [...owned.values()].map(({ topic, partition, log, committed, paused }) => ({
        ...{ topic, partition, committed, paused },
        settledTo: log.settledTo(),
        unsettled: log.unsettled,
      })),
      waiting: retries.count,
      ignored: items?.ignored() ?? {},
    }),
  };
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
