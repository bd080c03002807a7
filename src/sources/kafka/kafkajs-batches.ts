import { nameOf, type ClientEvents, type KafkaRecord, type Position, type TopicPartition } from "./client.ts";
import { memberAt, type KafkajsMember, type KafkajsMembership } from "./kafkajs-membership.ts";
import type { KafkajsBatch, KafkajsBatchPayload, KafkajsConsumer, KafkajsOffsets } from "./kafkajs-shapes.ts";
import type { KafkajsWatermarks } from "./kafkajs-watermarks.ts";
import { within } from "./within.ts";

/** Takes what kafkajs fetched, if it belongs to the present generation and begins where it must. */
export interface KafkajsBatches {
  take(payload: KafkajsBatchPayload): Promise<void>;
  /** kafkajs passes over a batch that holds only marks of transactions, or aborted records, without handing it over. */
  filtered(batch: FilteredBatch): void;
  /** Rejects if the broker refused. */
  commit(positions: readonly Position[]): Promise<void>;
  /** Hands the partitions back before the client may join again, and beats meanwhile. Never rejects. */
  beforeJoin(): Promise<void>;
  pause(partition: TopicPartition): void;
  resume(partition: TopicPartition): void;
  /** The consumer went down: what it gave is of no use for the one that follows. */
  ended(): void;
}

export interface FilteredBatch {
  readonly topic: string;
  readonly partition: number;
  readonly batchSize: number;
  /** The first record in it from where the fetch began; `null`: there is none, and `lastOffset` is where it began. */
  readonly firstOffset: string | null;
  readonly lastOffset: string;
}

export interface KafkajsBatchesOptions {
  readonly consumer: KafkajsConsumer;
  readonly membership: KafkajsMembership;
  readonly watermarks: KafkajsWatermarks;
  readonly events: ClientEvents;
  readonly heartbeatMs: number;
  /** Most records that are handed over at once. */
  readonly mostAtOnce: number;
  readonly stopped: () => boolean;
  /** Something was taken. */
  readonly progress: () => void;
}

export function createKafkajsBatches(options: KafkajsBatchesOptions): KafkajsBatches {
  const { consumer, membership, watermarks, events, mostAtOnce, stopped, progress } = options;
  const beatMs = Math.min(options.heartbeatMs, 1_000);
  // Of any batch since the consumer came up: a commit is sent once, and a beat, as the member the consumer is at that moment.
  let last: KafkajsBatchPayload | undefined;
  const paused = new Set<string>();
  // A batch whose beat failed ends before there is room: the next one waits for it first.
  let room: Promise<void> = Promise.resolve();

  /** Where the batch may be taken: the partition as it stands, or nothing. */
  async function memberFor(batch: KafkajsBatch): Promise<KafkajsMember | undefined> {
    const member = membership.get(batch);
    if (member === undefined || typeof batch.fetchedOffset !== "string") return member;
    const began = BigInt(batch.fetchedOffset);
    if (began === member.next) return member;
    if (member.sought < 2) {
      // Fetched before the last seek, as for an earlier generation: read again from where it must begin.
      membership.set({ ...member, sought: member.sought + 1, passedTo: undefined });
      consumer.seek({ topic: member.topic, partition: member.partition, offset: String(member.next) });
      return undefined;
    }
    // Read twice from there, and what comes first each time are filtered batches behind a gap, up to this one.
    if (began === member.passedTo) return move(member, began);
    const { low, high } = await watermarks(member);
    if (membership.get(batch) !== member) return undefined;
    if (member.next >= low && member.next <= high) {
      membership.set(memberAt(member, member.next));
      return undefined;
    }
    events.warn(
      `${nameOf(member)} has no offset ${member.next} any more (${low} to ${high}): reading goes on at ${began}.`,
    );
    return move(member, began, member.next > high);
  }

  /** Up to there no record is left to be read. `back`: the log is another one, which the source finds by its records. */
  function move(member: KafkajsMember, next: bigint, back = false): KafkajsMember {
    const moved = memberAt(member, next);
    membership.set(moved);
    if (!back) events.readTo({ topic: member.topic, partition: member.partition, offset: next });
    return moved;
  }

  /** After an error that is not the group's the client fetches on as the same member. */
  async function beat(heartbeat: () => Promise<void>): Promise<void> {
    try {
      await heartbeat();
    } catch (error) {
      if (isLost(error)) membership.lost();
      throw error;
    }
  }

  async function beatUntilRoom(heartbeat: () => Promise<void>): Promise<void> {
    const awaited = room;
    do await beat(heartbeat);
    while (!(await within(awaited, beatMs)));
  }

  async function take(payload: KafkajsBatchPayload): Promise<void> {
    const { batch, resolveOffset, heartbeat, isRunning, isStale } = payload;
    const { topic, partition, messages } = batch;
    const isOver = (): boolean => stopped() || isStale() || !isRunning();
    last = payload;
    await beatUntilRoom(heartbeat);
    if (isOver()) return;
    const { generation } = membership;
    let member = await memberFor(batch);
    if (member === undefined) return;
    for (let at = 0; at < messages.length; at += mostAtOnce) {
      // A rebalance, a seek or a pause: what was not handed over is read again.
      if (generation !== membership.generation || membership.get(batch) !== member || isOver()) return;
      if (paused.has(nameOf(batch))) return;
      const part = messages.slice(at, at + mostAtOnce);
      const lastOne = part.at(-1)?.offset as string;
      const end = at + mostAtOnce >= messages.length;
      const next = BigInt(end ? batch.lastOffset() : lastOne) + 1n;
      const records: KafkaRecord[] = part.map(({ offset, key, value, headers, timestamp }) => ({
        ...{ topic, partition, key, value, headers, timestamp },
        offset: BigInt(offset),
      }));
      room = events.records(records);
      if (end) events.readTo({ topic, partition, offset: next });
      member = memberAt(member, next);
      membership.set(member);
      resolveOffset(lastOne);
      progress();
      await beatUntilRoom(heartbeat);
    }
  }

  return {
    take,
    filtered({ topic, partition, batchSize, firstOffset, lastOffset }) {
      const member = membership.get({ topic, partition });
      if (batchSize > 0 || member === undefined) return;
      const last = BigInt(lastOffset);
      if (last < member.next) return;
      const first = BigInt(firstOffset ?? lastOffset);
      // What the batch holds is no news of its generation, but of the log: from the first to the last there is no record.
      if (first <= member.next) return void move(member, last + 1n);
      // Whether records lie before it cannot be seen here: it may have been fetched from further on.
      membership.set({ ...member, passedTo: last + 1n });
    },
    async commit(positions) {
      if (last !== undefined) return last.commitOffsetsIfNecessary(offsetsOf(positions));
      // Nothing but filtered batches came since the consumer is up.
      await consumer.commitOffsets(
        positions.map(({ topic, partition, offset }) => ({ topic, partition, offset: String(offset) })),
      );
    },
    async beforeJoin() {
      const back = membership.handBack();
      // The broker counts these beats, though it answers each with the same error, until it has lost the member.
      for (let lost = false; !lost && !(await within(back, beatMs));)
        lost = await (last?.heartbeat() ?? Promise.resolve()).then(() => false, isLost);
    },
    pause(partition) {
      paused.add(nameOf(partition));
      attempt(() => consumer.pause([{ topic: partition.topic, partitions: [partition.partition] }]));
    },
    resume(partition) {
      paused.delete(nameOf(partition));
      attempt(() => consumer.resume([{ topic: partition.topic, partitions: [partition.partition] }]));
    },
    ended() {
      last = undefined;
    },
  };
}

/** Between two lives the consumer takes no calls. When it joins again everything is paused first, and then begun. */
export function attempt(action: () => void): void {
  try {
    action();
  } catch {
    // As said above.
  }
}

/** The group has gone on without this member. */
const isLost = (error: unknown): boolean =>
  ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"].includes((error as { type?: unknown } | null)?.type as string);

function offsetsOf(positions: readonly Position[]): KafkajsOffsets {
  const byTopic = new Map<string, { partition: number; offset: string }[]>();
  for (const { topic, partition, offset } of positions) {
    const partitions = byTopic.get(topic) ?? [];
    partitions.push({ partition, offset: String(offset) });
    byTopic.set(topic, partitions);
  }
  return { topics: [...byTopic].map(([topic, partitions]) => ({ topic, partitions })) };
}
