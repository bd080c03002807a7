import { randomBytes } from "node:crypto";
import { InboxError } from "../errors.ts";
import { createIdentityDigest } from "../message/identity.ts";
import { driverFor } from "../store/postgres/drivers/detect.ts";
import { bucketCount, bucketOf, createAdder, emptySums, sameBucket } from "./bucket-sums.ts";
import { differenceOf, verdictOf, type Difference, type DifferenceKind } from "./difference.ts";
import { createDigestSet, type DigestSet } from "./digest-set.ts";
import { ledgerOf, type AppliedFilter, type Ledger } from "./ledger.ts";
import { checkOptions, wrong, type ReconcileOptions } from "./options.ts";
import { refused } from "./sent-fields.ts";
import type { SentMessage, SentReading, TimeRange } from "./sent.ts";

/** What a comparison found. */
export interface ReconcileReport {
  readonly consumer: string;
  readonly sentBy: string;
  readonly producers: readonly string[];
  readonly since: Date | undefined;
  readonly until: Date;
  readonly marginMs: number;
  /** Whether payloads were compared, or ids alone. */
  readonly payloads: boolean;
  /** Messages of the span that the list holds, copies counted. */
  readonly sent: number;
  /** Copies in the list, of one identity, where the sides were compared one by one. */
  readonly repeated: number;
  /** Messages of the span that were sent and are applied. */
  readonly applied: number;
  /** How many there are of each difference. */
  readonly differences: Readonly<Record<DifferenceKind, number>>;
  /** Applied messages that are not in the list, but too near to now, or for a list without times to the span's ends, to be called extra. */
  readonly atEdge: number;
  /** Buckets whose sums were not the same, of 65,536. */
  readonly differingBuckets: number;
}

const lookupSize = 2_000;
const maxProducers = 10_000;

/**
 * Compares what was sent with what a consumer has applied. First by sums over buckets, which tell where nothing differs
 * without moving a row; then one by one in the buckets that differ. A sent message is looked for by its identity, however
 * late it was applied. Needs two connections where both sides are one pool. Writes nothing.
 */
export async function reconcile(pool: unknown, options: ReconcileOptions): Promise<ReconcileReport> {
  const checked = checkOptions(options);
  const { consumer, sent, marginMs, since, schema, connectTimeoutMs } = checked;
  const ledger = ledgerOf(driverFor(pool), { schema, consumer, connectTimeoutMs });
  const settledBefore = (await ledger.now()).getTime() - marginMs;
  const until = options.until ?? new Date(settledBefore);
  if (since !== undefined && since >= until) {
    throw wrong("since", `before until (${until.toISOString()})`, since.toISOString());
  }
  const reading = await sent.open();
  try {
    const comparison = createComparison(reading, ledger, { ...checked, until }, settledBefore);
    const found = await comparison.run();
    return { consumer, sentBy: sent.name, since, until, marginMs, ...found };
  } finally {
    await reading.close();
  }
}

type Place = "inside" | "near" | "outside";

function createComparison(
  reading: SentReading,
  ledger: Ledger,
  options: ReturnType<typeof checkOptions> & { readonly until: Date },
  settledBefore: number,
) {
  const { consumer, sent: source, marginMs, onDifference } = options;
  const span: TimeRange = { since: options.since, until: options.until };
  const wide = moved(span, -marginMs, marginMs);
  const salt = randomBytes(16);
  const digestOf = createIdentityDigest(consumer);
  const differences: Record<DifferenceKind, number> = {
    ...{ missing: 0, recent: 0, conflicting: 0, extra: 0, pending: 0, quarantined: 0, discarded: 0 },
    ...{ unaccounted: 0, unchecked: 0 },
  };
  let sent = 0;
  let repeated = 0;
  let applied = 0;
  let atEdge = 0;
  let timed = true;
  let payloads: boolean | undefined;

  const placeOf = ({ time }: SentMessage): Place =>
    time === undefined || isWithin(time, span) ? "inside" : isWithin(time, wide) ? "near" : "outside";

  async function tell(difference: Difference): Promise<void> {
    differences[difference.kind] += 1;
    await onDifference?.(difference);
  }

  async function run() {
    const sums = emptySums();
    const insideCounts = new Uint32Array(bucketCount);
    const producers = new Set(options.producers);
    const add = createAdder(sums, salt);
    for await (const batch of reading.read(wide)) {
      for (const message of batch) {
        const place = placeOf(message);
        if (place === "outside") continue;
        const digest = digestOf(message);
        add(digest, message.fingerprint);
        if (message.time === undefined) timed = false;
        if (options.producers === undefined) learnProducer(producers, message);
        payloads ??= message.fingerprint !== undefined;
        if (payloads !== (message.fingerprint !== undefined)) throw mixed(source.name, message);
        if (place === "inside") {
          sent += 1;
          insideCounts[bucketOf(digest)]! += 1;
        }
      }
    }
    if (producers.size === 0) {
      throw wrong("producers", "given where the list is empty: whose messages would be extra?", "none");
    }
    const filter = { producers: [...producers], tenant: options.tenant };
    const appliedSums = await ledger.sums({ ...filter, range: wide }, salt, payloads === true);
    const differing: number[] = [];
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      if (sameBucket(sums, appliedSums, bucket)) applied += insideCounts[bucket]!;
      else differing.push(bucket);
    }
    for (const group of groupsOf(differing, sums.counts, options.maxDigests)) await compare(group, filter);
    return {
      ...{ producers: filter.producers, payloads: payloads === true, sent, repeated, applied, differences },
      ...{ atEdge, differingBuckets: differing.length },
    };
  }

  /** Both sides one by one, in some buckets: first the sent ones, then what was applied and is not among them. */
  async function compare(group: Group, filter: Omit<AppliedFilter, "range">): Promise<void> {
    const known = createDigestSet(group.sent);
    let asked: (readonly [digest: string, message: SentMessage])[] = [];
    for await (const batch of reading.read(wide)) {
      for (const message of batch) {
        const place = placeOf(message);
        if (place === "outside") continue;
        const digest = digestOf(message);
        if (group.buckets[bucketOf(digest)] !== 1) continue;
        if (!known.add(digest)) repeated += 1;
        if (place === "inside") asked.push([digest, message]);
      }
      if (asked.length >= lookupSize) {
        await judge(asked);
        asked = [];
      }
    }
    await judge(asked);
    await findExtra(group, known, filter);
  }

  async function judge(asked: readonly (readonly [digest: string, message: SentMessage])[]): Promise<void> {
    for (let from = 0; from < asked.length; from += lookupSize) {
      const part = asked.slice(from, from + lookupSize);
      for (const standing of await ledger.standing(part.map(([digest]) => digest))) {
        const [, message] = part[standing.n]!;
        const verdict = verdictOf(message, standing, settledBefore);
        if (verdict === "applied" || verdict === "unchecked") applied += 1;
        if (verdict !== "applied") await tell(differenceOf(verdict, message, standing));
      }
    }
  }

  async function findExtra(
    group: Group,
    known: DigestSet,
    filter: Omit<AppliedFilter, "range">,
  ): Promise<void> {
    // Without times the list cannot be read beyond its ends, so what was applied near them may belong to the next list.
    // And what was sent after the list was read is in no list yet.
    const certain = timed ? span : moved(span, marginMs, -marginMs);
    const isCertain = (time: number): boolean => isWithin(time, certain) && time < settledBefore;
    for await (const rows of ledger.rows({ ...filter, range: span }, group.buckets)) {
      for (const row of rows) {
        if (known.has(row.digest)) continue;
        if (!isCertain(row.processed_at.getTime())) {
          atEdge += 1;
          continue;
        }
        await tell({
          ...{ kind: "extra", tenant: row.tenant, producer: row.producer, id: row.message_id },
          ...{ sentAt: undefined, appliedAt: row.processed_at, entry: undefined },
        });
      }
    }
  }

  return { run };
}

interface Group {
  /** 1 for each bucket that belongs to it. */
  readonly buckets: Uint8Array;
  /** How many sent messages they hold. */
  readonly sent: number;
}

/** The buckets that differ, in groups that hold at most so many sent messages (or are one bucket). */
function groupsOf(differing: readonly number[], counts: Uint32Array, limit: number): readonly Group[] {
  const groups: { buckets: Uint8Array; sent: number }[] = [];
  for (const bucket of differing) {
    const count = counts[bucket]!;
    let last = groups.at(-1);
    if (last === undefined || last.sent + count > limit) {
      last = { buckets: new Uint8Array(bucketCount), sent: 0 };
      groups.push(last);
    }
    last.buckets[bucket] = 1;
    last.sent += count;
  }
  return groups;
}

const isWithin = (time: number, { since, until }: TimeRange): boolean =>
  (since === undefined || time >= since.getTime()) && (until === undefined || time < until.getTime());

const moved = ({ since, until }: TimeRange, sinceBy: number, untilBy: number): TimeRange => ({
  since: since && new Date(since.getTime() + sinceBy),
  until: until && new Date(until.getTime() + untilBy),
});

function learnProducer(producers: Set<string>, { producer }: SentMessage): void {
  producers.add(producer);
  if (producers.size <= maxProducers) return;
  throw new InboxError(
    "sent-refused",
    `The list names more than ${maxProducers} producers. Give producers, or compare them one by one.`,
  );
}

const mixed = (source: string, { id }: SentMessage): InboxError =>
  refused(
    source,
    `message ${JSON.stringify(id)}`,
    "Some messages of the list have a payload or a fingerprint and some have none. All or none: else a conflict would go unseen.",
  );
