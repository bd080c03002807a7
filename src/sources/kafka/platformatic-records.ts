import type { KafkaRecord, TopicPartition } from "./client.ts";
import type { PlatformaticBatch, PlatformaticPartition, PlatformaticRecord } from "./platformatic-shapes.ts";

export interface ReadRecords {
  readonly records: readonly KafkaRecord[];
  /** Everything below was read or is no record. */
  readonly next: bigint;
}

// Bits of a batch's attributes.
const appendTime = 1 << 3;
const transactional = 1 << 4;
const control = 1 << 5;

/**
 * The records of one fetched partition from an offset on. The client itself leaves out what was rolled back only where the
 * mark of that is in the same answer, and of each producer only once: here it is done as the protocol asks.
 */
export function readRecords(at: TopicPartition, from: bigint, fetched: PlatformaticPartition): ReadRecords {
  const aborted = [...(fetched.abortedTransactions ?? [])].sort((a, b) =>
    a.firstOffset < b.firstOffset ? -1 : 1,
  );
  const rolledBack = new Set<bigint>();
  const records: KafkaRecord[] = [];
  let next = from;
  for (const batch of fetched.records ?? []) {
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta);
    while (aborted[0] !== undefined && aborted[0].firstOffset <= last)
      rolledBack.add(aborted.shift()!.producerId);
    if ((batch.attributes & control) !== 0) {
      if (isAbort(batch)) rolledBack.delete(batch.producerId);
    } else if ((batch.attributes & transactional) === 0 || !rolledBack.has(batch.producerId)) {
      for (const record of batch.records) {
        const offset = batch.firstOffset + BigInt(record.offsetDelta);
        if (offset >= from) records.push({ ...recordOf(at, offset, record), ...timeOf(batch, record) });
      }
    }
    if (last >= next) next = last + 1n;
  }
  return { records, next };
}

/** As the broker took it in, where the topic says so, and else as its producer sent it. */
function timeOf(
  { firstTimestamp, maxTimestamp, attributes }: PlatformaticBatch,
  { timestampDelta }: PlatformaticRecord,
): Pick<KafkaRecord, "timestamp"> {
  if ((attributes & appendTime) !== 0) return { timestamp: maxTimestamp };
  return firstTimestamp === undefined ? {} : { timestamp: firstTimestamp + BigInt(timestampDelta ?? 0) };
}

/** The key of a mark holds a version and the kind: 0 is a roll-back. */
const isAbort = ({ records }: PlatformaticBatch): boolean => {
  const key = records[0]?.key;
  return key !== null && key !== undefined && key.length >= 4 && key.readInt16BE(2) === 0;
};

const recordOf = (
  { topic, partition }: TopicPartition,
  offset: bigint,
  { key, value, headers }: PlatformaticRecord,
): KafkaRecord => ({
  ...{ topic, partition, offset, key, value },
  headers: headers.map(([name, content]) => [name?.toString("utf8") ?? "", content]),
});
