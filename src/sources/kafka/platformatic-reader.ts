import {
  nameOf,
  type ClientEvents,
  type KafkaRecord,
  type TopicPartition,
  type Watermarks,
} from "./client.ts";
import { readRecords, type ReadRecords } from "./platformatic-records.ts";
import {
  fetchedBeside,
  textOf,
  type PlatformaticConsumer,
  type PlatformaticFetched,
  type PlatformaticMetadata,
  type PlatformaticPartition,
} from "./platformatic-shapes.ts";

/** A partition while this member owns it. */
export interface Reading extends TopicPartition {
  /** Where reading goes on; `undefined` until it is known where to begin. */
  next: bigint | undefined;
  /** The source rests it. */
  paused: boolean;
  /** It is somebody else's: what was fetched for it is dropped. */
  gone: boolean;
  /** Not fetched before, in milliseconds of `performance.now()`. */
  notBefore: number;
}

/** Fetches, one request at a time from each broker, while the source has room. */
export interface PlatformaticReader {
  /** Something may be fetched now. */
  wake(): void;
}

export interface PlatformaticReaderOptions {
  /** A client that nothing else waits for: the broker answers a connection's requests one after another. */
  readonly client: PlatformaticConsumer;
  readonly topics: readonly string[];
  readonly limits: {
    readonly maxBytes: number;
    readonly maxBytesPerPartition: number;
    readonly minBytes: number;
    readonly maxWaitTime: number;
  };
  /** Most records of one partition that are handed over at once. */
  readonly mostOfOne: number;
  readonly owned: () => Iterable<Reading>;
  readonly watermarks: (partition: TopicPartition) => Promise<Watermarks>;
  readonly events: ClientEvents;
  readonly stopped: () => boolean;
  /** A topic has more partitions than before. */
  readonly grown: () => void;
}

interface Part extends ReadRecords {
  readonly reading: Reading;
  /** Where reading must stand for the rest to be handed over; `undefined`: nothing of it is any more. */
  from: bigint | undefined;
}

const pauseMs = 300;
const outOfRange = 1;

export function createPlatformaticReader(options: PlatformaticReaderOptions): PlatformaticReader {
  const { client, topics, limits, mostOfOne, owned, watermarks, events, stopped, grown } = options;
  const busy = new Set<number>();
  const counts = new Map<string, number>();
  // Fetched answers whose records have not all found room.
  let waiting = 0;
  let looking = false;
  let again = false;
  let timer: NodeJS.Timeout | undefined;

  function wake(): void {
    if (looking) again = true;
    else void look();
  }

  function wakeLater(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      wake();
    }, pauseMs);
  }

  async function look(): Promise<void> {
    looking = true;
    do {
      again = false;
      if (waiting > 0 || stopped() || ready().length === 0) continue;
      try {
        const metadata = await client.metadata({ topics: [...topics] });
        countPartitions(metadata);
        start(metadata);
      } catch (error) {
        warn(error);
        wakeLater();
      }
    } while (again);
    looking = false;
  }

  function ready(): Reading[] {
    const now = performance.now();
    const wanted = [...owned()].filter(({ next, paused, gone }) => next !== undefined && !paused && !gone);
    if (wanted.some(({ notBefore }) => notBefore > now)) wakeLater();
    return wanted.filter(({ notBefore }) => notBefore <= now);
  }

  function countPartitions({ topics: known }: PlatformaticMetadata): void {
    for (const [topic, description] of known) {
      const count = description?.partitions.length ?? 0;
      const before = counts.get(topic) ?? count;
      counts.set(topic, Math.max(before, count));
      if (count > before) grown();
    }
  }

  function start({ topics: known }: PlatformaticMetadata): void {
    const byLeader = new Map<number, { readonly topicId: string; readonly reading: Reading }[]>();
    for (const reading of ready()) {
      const topic = known.get(reading.topic);
      const leader = topic?.partitions[reading.partition]?.leader ?? -1;
      if (topic === undefined || leader < 0) {
        rest(reading);
        client.clearMetadata();
        continue;
      }
      const asked = byLeader.get(leader) ?? [];
      asked.push({ topicId: topic.id, reading });
      byLeader.set(leader, asked);
    }
    if (waiting > 0 || stopped()) return;
    for (const [node, asked] of byLeader) if (!busy.has(node)) void fetch(node, asked);
  }

  function rest(reading: Reading): void {
    reading.notBefore = performance.now() + pauseMs;
    wakeLater();
  }

  async function fetch(
    node: number,
    asked: readonly { readonly topicId: string; readonly reading: Reading }[],
  ): Promise<void> {
    busy.add(node);
    const places = new Map<string, { readonly reading: Reading; readonly from: bigint }>();
    for (const { topicId, reading } of asked)
      places.set(`${topicId}/${reading.partition}`, { reading, from: reading.next as bigint });
    try {
      const fetched = await client.fetch({
        ...{ node, ...limits },
        topics: asked.map(({ topicId, reading }) => ({
          topicId,
          partitions: [
            {
              partition: reading.partition,
              fetchOffset: reading.next as bigint,
              partitionMaxBytes: limits.maxBytesPerPartition,
              // Which copy of the log it is, is found by the broker's word on the offset.
              currentLeaderEpoch: -1,
              lastFetchedEpoch: -1,
            },
          ],
        })),
      });
      events.alive();
      await take(fetched, places);
    } catch (error) {
      const beside = fetchedBeside(error);
      if (beside !== undefined) await take(beside, places);
      else {
        warn(error);
        client.clearMetadata();
        for (const { reading } of asked) rest(reading);
      }
    } finally {
      busy.delete(node);
      wake();
    }
  }

  function warn(error: unknown): void {
    if (!stopped()) events.warn(`The Kafka client says: ${textOf(error)}`);
  }

  async function take(
    { responses }: PlatformaticFetched,
    places: ReadonlyMap<string, { readonly reading: Reading; readonly from: bigint }>,
  ): Promise<void> {
    if (stopped()) return;
    const parts: Part[] = [];
    const lost: Reading[] = [];
    for (const { topicId, partitions } of responses) {
      for (const partition of partitions) {
        const place = places.get(`${topicId}/${partition.partitionIndex}`);
        // Given back, or rested and sent back, since it was asked for.
        if (place === undefined || place.reading.gone || place.reading.next !== place.from) continue;
        if (partition.errorCode === outOfRange) lost.push(place.reading);
        else if (partition.errorCode !== 0) refused(place.reading, partition);
        else parts.push({ ...place, ...readRecords(place.reading, place.from, partition) });
      }
    }
    for (const reading of lost) await findAgain(reading);
    waiting++;
    await handOver(parts);
    waiting--;
  }

  function refused(reading: Reading, { errorCode }: PlatformaticPartition): void {
    client.clearMetadata();
    rest(reading);
    events.warn(`${nameOf(reading)} cannot be read now: the broker answers with error ${errorCode}.`);
  }

  /** In turns of some records of each partition: a long backlog of one holds no other up. */
  async function handOver(parts: readonly Part[]): Promise<void> {
    const longest = parts.reduce((most, { records }) => Math.max(most, records.length), 0);
    for (let at = 0; at < Math.max(1, longest) && !stopped(); at += mostOfOne) {
      const batch: KafkaRecord[] = [];
      const reached: Reading[] = [];
      for (const part of parts) {
        const { reading, records, next } = part;
        if (at >= Math.max(1, records.length)) continue;
        // Given back or rested meanwhile: what is left is read again.
        if (reading.gone || reading.paused || reading.next !== part.from) part.from = undefined;
        if (part.from === undefined) continue;
        const some = records.slice(at, at + mostOfOne);
        for (const record of some) batch.push(record);
        const end = at + mostOfOne >= records.length;
        const to = end ? next : (some.at(-1) as KafkaRecord).offset + 1n;
        if (end && to !== reading.next) reached.push(reading);
        reading.next = to;
        part.from = to;
      }
      const room = batch.length > 0 ? events.records(batch) : undefined;
      for (const { topic, partition, next } of reached)
        events.readTo({ topic, partition, offset: next as bigint });
      await room;
    }
  }

  /** The broker has no such offset: its oldest records were dropped, or the log is another one. */
  async function findAgain(reading: Reading): Promise<void> {
    const { topic, partition, next } = reading;
    try {
      const { low, high } = await watermarks(reading);
      if (reading.gone || reading.next !== next || next === undefined) return;
      if (next >= low && next <= high) return rest(reading);
      events.warn(
        `${nameOf(reading)} has no offset ${next} any more (${low} to ${high}): reading goes on at ${low}.`,
      );
      reading.next = low;
      // Back in another log: the source finds that by its records.
      if (next < low) events.readTo({ topic, partition, offset: low });
    } catch (error) {
      warn(error);
      rest(reading);
    }
  }

  return { wake };
}
