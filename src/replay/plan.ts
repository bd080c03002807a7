import type { FingerprintMode } from "../message/fingerprint.ts";
import { createIdentityDigest } from "../message/identity.ts";
import type { Message } from "../message/message.ts";
import { sentAt } from "../message/sent-at.ts";
import { postgres } from "../store/postgres/postgres.ts";
import type { Retention } from "../store/retention.ts";
import { driverFor } from "../store/postgres/drivers/detect.ts";
import { growingDigests } from "./growing-digests.ts";
import { originalsWord, type SkipReason } from "./only-applied.ts";
import { replayTarget, type ReplayPolicy, type ReplayTarget } from "./policy.ts";
import type { ReplaySource } from "./replay-source.ts";
import { replayTables, type ReplayStanding, type ReplayTables } from "./replay-tables.ts";
import { survey } from "./survey.ts";

/** How many messages were applied by each handler version. */
export type ByVersion = Readonly<Record<string, number>>;

/** What a replay would do, told without doing any of it. Copies in the source count once, but for `copies`. */
export interface ReplayPlan {
  readonly policy: ReplayTarget["kind"];
  /** Under which name messages would be taken. */
  readonly consumer: string;
  readonly of: string | undefined;
  readonly effects: ReplayTarget["effects"];
  readonly source: string;
  /** Messages in the source that would be handled. */
  readonly wouldRun: number;
  /** Messages in the source that were applied under that name before. */
  readonly applied: ByVersion;
  /** In pending or in quarantine under that name. */
  readonly stored: number;
  /** Taken under that name with another payload: they would go to quarantine. */
  readonly conflicting: number;
  /** What the policy leaves out. */
  readonly skipped: Readonly<Record<SkipReason, number>>;
  /** Lines or records that are no messages: they would go to quarantine. */
  readonly unreadable: number;
  /**
   * Sent before the horizon under the replay's own name, and not in the ledger: they would go to quarantine as `late`. Only
   * after something was forgotten under that name.
   */
  readonly late: number;
  /** Further copies of messages in the source. */
  readonly copies: number;
  /** The original's side; `undefined` without one. */
  readonly original: OriginalSide | undefined;
}

/** How the source and what the original has applied stand to each other. */
export interface OriginalSide {
  /** Messages in the source that the original has applied. */
  readonly applied: ByVersion;
  /** In the source, and never taken by the original, or forgotten. */
  readonly unknown: number;
  /** In the source; the original has them in pending or in quarantine. */
  readonly stored: number;
  /** In the source with another payload than the original has applied. */
  readonly otherPayload: number;
  /** What the original has applied and the source does not hold: there is no body to replay. */
  readonly withoutBody: number;
  /** What was sent before is forgotten by the original; `undefined`: nothing is. The latest, where producers have their own. */
  readonly horizon: Date | undefined;
  /**
   * Of the unknown ones: sent before the original's horizon. Nobody can tell whether the original has applied them: a
   * correction leaves them out, a rebuild and a projection take them.
   */
  readonly beyondHorizon: number;
}

export interface ReplayPlanOptions {
  readonly policy: ReplayPolicy;
  /** What would be replayed; it is read to its end, and nothing of that is remembered. */
  readonly source: ReplaySource;
  /** The schema that holds the inbox's tables. Default `inbox`. */
  readonly schema?: string | undefined;
  /** How long to wait for a connection, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Told what the source warns of. */
  readonly onWarning?: ((text: string) => void) | undefined;
}

/**
 * What a replay would do: reads the source and the ledger, and writes nothing. Rejects with `replay-refused` without a
 * policy, with `source-failed` for a source that cannot be read.
 */
export async function planReplay(pool: unknown, options: ReplayPlanOptions): Promise<ReplayPlan> {
  const target = replayTarget(options.policy);
  const { schema, connectTimeoutMs } = options;
  const tables = replayTables(driverFor(pool), schema ?? "inbox", connectTimeoutMs ?? 5_000);
  const { retention } = postgres(pool, { schema, connectTimeoutMs });
  const count = await createCount(
    tables,
    target,
    horizonsOf(target.of === undefined ? [] : await retention.list(target.of)),
    horizonsOf(await retention.list(target.consumer)),
  );
  const source = await options.source.open({
    ...{ consumer: target.consumer, resumes: false, planning: true },
    checkpoints: { load: async () => undefined, save: async () => undefined },
  });
  await survey(source, target.consumer, {
    messages: (messages) => count.add(messages),
    unreadable: (more) => count.unreadable(more),
    warn: (text) => options.onWarning?.(text),
  });
  return count.plan(options.source.name);
}

interface Count {
  add(messages: readonly Message[]): Promise<void>;
  unreadable(more: number): void;
  plan(source: string): ReplayPlan;
}

async function createCount(
  tables: ReplayTables,
  target: ReplayTarget,
  horizons: Horizons,
  own: Horizons,
): Promise<Count> {
  const { kind, consumer, of, effects, appliedBy } = target;
  const digestOf = createIdentityDigest(of ?? consumer);
  const digestUnder = createIdentityDigest(consumer);
  const seen = growingDigests();
  // As of one moment, so that what the original applies meanwhile is on neither side.
  const before = await tables.now();
  const originalsAll = of === undefined ? {} : await tables.applied(of, before);
  const applied: Record<string, number> = {};
  const ofApplied: Record<string, number> = {};
  const skipped = { unknown: 0, stored: 0, "other-payload": 0, "other-version": 0 };
  const originals = { unknown: 0, stored: 0, "other-payload": 0 };
  let [wouldRun, stored, conflicting, unreadable, copies, withBody] = [0, 0, 0, 0, 0, 0];
  let [late, beyondHorizon] = [0, 0];

  function addOne(message: Message, standing: ReplayStanding): void {
    const word = of === undefined ? undefined : originalsWord(message, standing, undefined);
    if (word === "applied") addTo(ofApplied, standing.of_version!);
    else if (word !== undefined) originals[word as keyof typeof originals]++;
    if (standing.of_before === true) withBody++;
    if (word === "unknown" && horizons.passed(message)) beyondHorizon++;
    const reason = kind === "compensate" ? originalsWord(message, standing, appliedBy) : "applied";
    if (reason !== "applied") skipped[reason]++;
    else if (standing.version === null) {
      if (own.passed(message)) late++;
      else wouldRun++;
    } else if (!isBody(message, standing)) conflicting++;
    else if (standing.applied) addTo(applied, standing.version);
    else stored++;
  }

  return {
    async add(messages) {
      const fresh = messages.filter((message) => seen.add(digestUnder(message)));
      copies += messages.length - fresh.length;
      if (fresh.length === 0) return;
      const found = await tables.standing(fresh.map(digestUnder), fresh.map(digestOf), before);
      for (const [at, message] of fresh.entries()) addOne(message, found[at]!);
    },
    unreadable: (more) => void (unreadable += more),
    plan: (source) => ({
      ...{ policy: kind, consumer, of, effects, source },
      ...{ wouldRun, applied, stored, conflicting, skipped, unreadable, late, copies },
      original:
        of === undefined
          ? undefined
          : {
              ...{ applied: ofApplied, unknown: originals.unknown, stored: originals.stored },
              otherPayload: originals["other-payload"],
              withoutBody: sumOf(originalsAll) - withBody,
              ...{ horizon: horizons.latest, beyondHorizon },
            },
    }),
  };
}

interface Horizons {
  readonly latest: Date | undefined;
  /** Whether a message says that it was sent before its producer's horizon. */
  passed(message: Message): boolean;
}

function horizonsOf(retentions: readonly Retention[]): Horizons {
  const byProducer = new Map(retentions.map(({ producer, horizon }) => [producer, horizon]));
  const times = retentions.flatMap(({ horizon }) => (horizon === undefined ? [] : [horizon.getTime()]));
  return {
    latest: times.length === 0 ? undefined : new Date(Math.max(...times)),
    passed({ producer, time }) {
      const horizon = byProducer.has(producer) ? byProducer.get(producer) : byProducer.get(undefined);
      const sent = sentAt(time);
      return horizon !== undefined && sent !== undefined && sent < horizon.getTime();
    },
  };
}

/** Whether the message has a body that was taken under the replay's name: the first one, or a repair's. */
const isBody = (
  message: Message,
  { fingerprint, mode, repaired, repaired_mode: repairedMode }: ReplayStanding,
): boolean =>
  message.fingerprint(mode as FingerprintMode).digest === fingerprint ||
  (repaired !== null && message.fingerprint(repairedMode as FingerprintMode).digest === repaired);

function addTo(counts: Record<string, number>, version: string): void {
  counts[version] = (Object.hasOwn(counts, version) ? counts[version]! : 0) + 1;
}

const sumOf = (counts: ByVersion): number => Object.values(counts).reduce((sum, count) => sum + count, 0);
