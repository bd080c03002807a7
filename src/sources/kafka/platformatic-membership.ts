import {
  nameOf,
  type Assignment,
  type ClientEvents,
  type TopicPartition,
  type Watermarks,
} from "./client.ts";
import type { Reading } from "./platformatic-reader.ts";
import {
  isFinal,
  textOf,
  type PlatformaticAssignment,
  type PlatformaticConsumer,
} from "./platformatic-shapes.ts";
import { within } from "./within.ts";

/** As whom offsets are committed. */
export interface Member {
  readonly memberId: string | null;
  readonly generationId: number;
}

export interface Joined {
  readonly memberId: string | null;
  readonly generationId: number;
  readonly assignments: readonly PlatformaticAssignment[] | null;
}

/** Who owns what. The client waits for `beforeJoin` with each request to join, so that partitions are given back first. */
export interface PlatformaticMembership {
  /** Resolves when what is to be given back is finished, with what the client tells the group of itself. Never rejects. */
  beforeJoin(): Promise<Buffer>;
  joined(joined: Joined): void;
  owned(): Iterable<Reading>;
  get(partition: TopicPartition): Reading | undefined;
  readonly member: Member | undefined;
}

export interface PlatformaticMembershipOptions {
  /** The client that is the group's member. */
  readonly group: PlatformaticConsumer;
  /** The client that asks for offsets. */
  readonly offsets: PlatformaticConsumer;
  readonly watermarks: (partition: TopicPartition) => Promise<Watermarks>;
  readonly events: ClientEvents;
  /** A member keeps through a rebalance what it is not asked to give back. */
  readonly cooperative: boolean;
  readonly fromBeginning: boolean;
  readonly revokeTimeoutMs: number;
  readonly closing: () => boolean;
  /** There may be something to read. */
  readonly ready: () => void;
}

const firstPauseMs = 100;
const longestPauseMs = 2_000;

export function createPlatformaticMembership(options: PlatformaticMembershipOptions): PlatformaticMembership {
  const { group, offsets, watermarks, events, closing } = options;
  const readings = new Map<string, Reading>();
  let member: Member | undefined;
  let beginning: Promise<void> = Promise.resolve();

  function namesOf(assignments: readonly PlatformaticAssignment[] | null): Map<string, TopicPartition> {
    const names = new Map<string, TopicPartition>();
    for (const { topic, partitions } of assignments ?? [])
      for (const partition of partitions) names.set(nameOf({ topic, partition }), { topic, partition });
    return names;
  }

  function drop(list: readonly Reading[]): void {
    for (const reading of list) {
      reading.gone = true;
      readings.delete(nameOf(reading));
    }
  }

  const isMine = (reading: Reading): boolean => !reading.gone && !closing();

  async function begin(added: readonly Reading[]): Promise<void> {
    const starts = await startsOf(added);
    const mine = starts.filter(({ reading }) => isMine(reading));
    if (mine.length === 0) return;
    let allowed: readonly Assignment[];
    try {
      allowed = await events.assigned(mine.map(({ assignment }) => assignment));
    } catch (error) {
      return events.failed(error as Error);
    }
    for (const assignment of allowed) {
      const reading = readings.get(nameOf(assignment));
      if (reading !== undefined && added.includes(reading)) reading.next = assignment.start ?? 0n;
    }
    options.ready();
  }

  /** Tries until it succeeds: whether a broker answers at all is watched by the source. */
  async function startsOf(
    added: readonly Reading[],
  ): Promise<readonly { readonly reading: Reading; readonly assignment: Assignment }[]> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const mine = added.filter(isMine);
      if (mine.length === 0) return [];
      try {
        return await committed(mine);
      } catch (error) {
        if (isFinal(error)) {
          events.failed(error as Error);
          return [];
        }
        if (!closing()) events.warn(`Committed offsets could not be read: ${textOf(error)}`);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  async function committed(
    mine: readonly Reading[],
  ): Promise<readonly { readonly reading: Reading; readonly assignment: Assignment }[]> {
    const topics = new Map<string, number[]>();
    for (const { topic, partition } of mine) topics.set(topic, [...(topics.get(topic) ?? []), partition]);
    const found = await offsets.listCommittedOffsets({
      topics: [...topics].map(([topic, partitions]) => ({ topic, partitions })),
    });
    events.alive();
    return Promise.all(
      mine.map(async (reading) => {
        const { topic, partition } = reading;
        const offset = found.get(topic)?.[partition];
        if (offset !== undefined && offset >= 0n)
          return { reading, assignment: { topic, partition, start: offset } };
        const { low, high } = await watermarks(reading);
        return { reading, assignment: { topic, partition, start: options.fromBeginning ? low : high } };
      }),
    );
  }

  /** What assigners of other members may read of this one: the generation in which it owns what it says. */
  function describe(): Buffer {
    if (!options.cooperative) return Buffer.alloc(0);
    const owns = group.memberId !== null && (group.assignments ?? []).length > 0;
    const data = Buffer.alloc(4);
    data.writeInt32BE(owns ? group.generationId : -1);
    return data;
  }

  return {
    async beforeJoin() {
      // A cooperative member joins twice: what it gives back before the second time is committed in the generation between.
      if (group.memberId !== null) member = { memberId: group.memberId, generationId: group.generationId };
      const kept = options.cooperative ? namesOf(group.assignments) : new Map<string, TopicPartition>();
      const leaving = [...readings.values()].filter((reading) => !kept.has(nameOf(reading)));
      drop(leaving);
      if (leaving.length > 0 && !closing()) {
        // What has just begun must be known to the source before it can be taken back.
        await within(beginning, options.revokeTimeoutMs).catch(() => false);
        // Without its name in the group the member has lost them.
        if (group.memberId === null) events.lost(leaving);
        else await events.revoked(leaving);
      }
      return describe();
    },
    joined({ memberId, generationId, assignments }) {
      member = { memberId, generationId };
      events.alive();
      const mine = namesOf(assignments);
      const removed = [...readings.values()].filter((reading) => !mine.has(nameOf(reading)));
      drop(removed);
      if (removed.length > 0) events.lost(removed);
      const added: Reading[] = [];
      for (const [name, { topic, partition }] of mine) {
        if (readings.has(name)) continue;
        const reading: Reading = {
          ...{ topic, partition },
          ...{ next: undefined, paused: false, gone: false, notBefore: 0 },
        };
        readings.set(name, reading);
        added.push(reading);
      }
      const before = beginning;
      beginning = before.then(() => begin(added));
    },
    owned: () => readings.values(),
    get: (partition) => readings.get(nameOf(partition)),
    get member() {
      return member;
    },
  };
}
