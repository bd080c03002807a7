import { nameOf, type ClientEvents, type KafkaRecord } from "./client.ts";
import type { KafkajsMember, KafkajsMembership } from "./kafkajs-membership.ts";
import type { KafkajsBatch, KafkajsBatchPayload, KafkajsConsumer, KafkajsOffsets } from "./kafkajs-shapes.ts";
import type { KafkajsWatermarks } from "./kafkajs-watermarks.ts";
import { within } from "./within.ts";

/** Takes what kafkajs fetched, if it belongs to the present generation and begins where it must. */
export interface KafkajsBatches {
  take(payload: KafkajsBatchPayload): Promise<void>;
  /** kafkajs passes over a batch that holds only marks of transactions, or aborted records, without handing it over. */
  filtered(batch: FilteredBatch): void;
  /** Rejects if the broker refused, or if this member has handed nothing over in the present generation. */
  commit(offsets: KafkajsOffsets): Promise<void>;
  pauseAll(topics: readonly string[]): void;
}

export interface FilteredBatch {
  readonly topic: string;
  readonly partition: number;
  readonly batchSize: number;
  readonly lastOffset: string;
}

export interface KafkajsBatchesOptions {
  readonly consumer: KafkajsConsumer;
  readonly membership: KafkajsMembership;
  readonly watermarks: KafkajsWatermarks;
  readonly events: ClientEvents;
  readonly heartbeatMs: number;
  readonly stopped: () => boolean;
  /** Something was taken. */
  readonly progress: () => void;
}

const mostAtOnce = 500;

export function createKafkajsBatches(options: KafkajsBatchesOptions): KafkajsBatches {
  const { consumer, membership, watermarks, events, stopped, progress } = options;
  const beatMs = Math.min(options.heartbeatMs, 1_000);
  let sender: { readonly generation: number; readonly send: KafkajsBatchPayload["commitOffsetsIfNecessary"] };

  /** Where the batch may be taken: the partition as it stands, or nothing. */
  async function memberFor(batch: KafkajsBatch): Promise<KafkajsMember | undefined> {
    const member = membership.get(batch);
    if (member === undefined || typeof batch.fetchedOffset !== "string") return member;
    const began = BigInt(batch.fetchedOffset);
    if (began === member.next) return member;
    // Fetched for an earlier generation: read again from where it must begin.
    if (!member.sought) {
      membership.set({ ...member, sought: true });
      consumer.seek({ topic: member.topic, partition: member.partition, offset: String(member.next) });
      return undefined;
    }
    const { low, high } = await watermarks(member);
    if (membership.get(batch)?.next !== member.next || (member.next >= low && member.next <= high))
      return undefined;
    events.warn(
      `${nameOf(member)} has no offset ${member.next} any more (${low} to ${high}): reading goes on at ${began}.`,
    );
    const moved: KafkajsMember = { ...member, next: began, sought: false };
    membership.set(moved);
    return moved;
  }

  /** Beats until there is room; a beat that says the group is rebalancing lets what is in hand be finished first. */
  async function beatUntil(room: Promise<void>, heartbeat: () => Promise<void>): Promise<void> {
    while (!(await within(room, beatMs))) {
      try {
        await heartbeat();
      } catch (error) {
        // After anything else the client fetches on as the same member.
        if (!endsGeneration(error)) throw error;
        const back = membership.handBack();
        // The broker counts these beats, though it answers each with the same error.
        while (!(await within(back, beatMs))) await heartbeat().catch(() => undefined);
        throw error;
      }
    }
  }

  async function take(payload: KafkajsBatchPayload): Promise<void> {
    const { batch, resolveOffset, heartbeat, isRunning, isStale } = payload;
    const { topic, partition, messages } = batch;
    if (stopped() || isStale() || !isRunning()) return;
    const { generation } = membership;
    let member = await memberFor(batch);
    if (member === undefined) return;
    sender = { generation, send: payload.commitOffsetsIfNecessary };
    for (let at = 0; at < messages.length; at += mostAtOnce) {
      // A rebalance or a seek: what was not handed over is read again.
      if (generation !== membership.generation || membership.get(batch) !== member) return;
      if (stopped() || isStale() || !isRunning()) return;
      const part = messages.slice(at, at + mostAtOnce);
      const last = part.at(-1)?.offset as string;
      const end = at + mostAtOnce >= messages.length;
      const next = BigInt(end ? batch.lastOffset() : last) + 1n;
      const records: KafkaRecord[] = part.map(({ offset, key, value, headers }) => ({
        ...{ topic, partition, key, value, headers },
        offset: BigInt(offset),
      }));
      const room = events.records(records);
      if (end) events.readTo({ topic, partition, offset: next });
      member = { ...member, next, sought: false };
      membership.set(member);
      resolveOffset(last);
      progress();
      await beatUntil(room, heartbeat);
    }
  }

  return {
    take,
    filtered({ topic, partition, batchSize, lastOffset }) {
      const member = membership.get({ topic, partition });
      if (batchSize > 0 || member === undefined) return;
      const next = BigInt(lastOffset) + 1n;
      if (next <= member.next) return;
      membership.set({ ...member, next });
      events.readTo({ topic, partition, offset: next });
    },
    async commit(offsets) {
      if (sender?.generation !== membership.generation) {
        throw new Error("The group has been balanced anew; nothing was read since.");
      }
      await sender.send(offsets);
    },
    pauseAll(topics) {
      try {
        consumer.pause(topics.map((topic) => ({ topic })));
      } catch {
        // It is between two lives; when it joins again it stays paused.
      }
    },
  };
}

/** What makes kafkajs join again. */
const endsGeneration = (error: unknown): boolean =>
  ["REBALANCE_IN_PROGRESS", "NOT_COORDINATOR_FOR_GROUP", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"].includes(
    (error as { type?: unknown } | null)?.type as string,
  );
