import { InboxError } from "../errors.ts";
import { classifyError, errorText } from "../inbox/classify-error.ts";
import { createInbox } from "../inbox/create-inbox.ts";
import type { InboxOptions } from "../inbox/options.ts";
import type { Run, RunStats } from "../inbox/run.ts";
import { showValue } from "../message/show-value.ts";
import type { CheckpointStore } from "../sources/ndjson/checkpoint.ts";
import type { Source } from "../sources/source.ts";
import type { PayloadKeys } from "../store/protection.ts";
import { driverFor } from "../store/postgres/drivers/detect.ts";
import { postgres } from "../store/postgres/postgres.ts";
import type { Decider } from "../store/quarantine-store.ts";
import { wholeNumber } from "../whole-number.ts";
import { handlerUnder, type ReplayHandler } from "./handler-effects.ts";
import { onlyApplied, type SkipReason } from "./only-applied.ts";
import { paced } from "./paced.ts";
import { replayTarget, type ReplayPolicy, type ReplayTarget } from "./policy.ts";
import type { ReplaySource } from "./replay-source.ts";
import { replayTables, type ReplayTables } from "./replay-tables.ts";

export interface ReplayOptions extends Decider {
  readonly policy: ReplayPolicy;
  /** Where the messages come from: `replayFile`, `replayStored`, `replayKafka`, or your own. */
  readonly source: ReplaySource;
  /** Of the read model, of the projection, or of the correction: never of the original's effects again. */
  readonly handler: ReplayHandler;
  /** Messages a second at most, in this process. Retries of failed ones come on top. Default: as fast as it can. */
  readonly messagesPerSecond?: number | undefined;
  /** Begins at the source's beginning, whatever an earlier run has done: what was applied is found as a duplicate. */
  readonly fromStart?: boolean | undefined;
  /** What `createInbox` takes besides: `handlerVersion`, `payloadSchema`, `lanes`, … */
  readonly inbox?: Partial<Omit<InboxOptions, "store" | "consumer">> | undefined;
  /** The schema that holds the inbox's tables. Default `inbox`. */
  readonly schema?: string | undefined;
  /** Keys to seal bodies with, as in `postgres(pool, { payloadKeys })`. */
  readonly payloadKeys?: PayloadKeys | undefined;
  /** How long to wait for a connection, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/** What a run of a replay has done so far. */
export interface ReplayCounts {
  /** Messages that the policy let through. */
  readonly deliveries: number;
  readonly applied: number;
  /** Applied before under the replay's name: by an earlier run, another operator's, or as copies. */
  readonly duplicates: number;
  /** In pending, for another attempt or behind their key. */
  readonly stored: number;
  readonly conflicts: number;
  readonly rejected: number;
  readonly late: number;
  /** What the policy left out. */
  readonly skipped: Readonly<Record<SkipReason, number>>;
  /** Effects that the handler asked for and that were dropped, counted with each attempt. */
  readonly effectsDropped: number;
}

export interface ReplayReport {
  /** The number under which it is recorded. */
  readonly id: string;
  readonly policy: ReplayTarget["kind"];
  readonly consumer: string;
  readonly of: string | undefined;
  readonly source: string;
  /** The earlier run that this one went on with. */
  readonly resumes: string | undefined;
  /** `stopped`: before the source's end. The next run goes on there. */
  readonly ended: "done" | "stopped";
  readonly counts: ReplayCounts;
}

/** A replay at work. */
export interface Replay extends AsyncDisposable {
  /** Resolves when the source has ended and all is handled, or after `stop`. Rejects if it was refused or failed. */
  readonly finished: Promise<ReplayReport>;
  /** Stops, and finishes what is begun. Twice is harmless. */
  stop(): Promise<ReplayReport>;
  counts(): ReplayCounts;
}

const noteEveryMs = 1_000;

/**
 * Handles messages again under a policy, and records who asked for it, why, and what came of it. What is applied is in
 * the ledger, under the policy's own name: a killed replay that is run again, or one that two operators run at once,
 * applies each message once. Throws `replay-refused` without a policy, `decision-needs` without who and why,
 * `invalid-option`; `finished` rejects with `replay-refused`, `effect-refused`, `consumer-retired` or `source-failed`.
 */
export function replay(pool: unknown, options: ReplayOptions): Replay {
  const target = replayTarget(options.policy);
  const { by, why, messagesPerSecond, schema } = options;
  if (!isText(by) || !isText(why)) {
    throw new InboxError("decision-needs", "A replay is kept with who asked for it (by) and why.");
  }
  if (messagesPerSecond !== undefined)
    wholeNumber("messagesPerSecond", messagesPerSecond, messagesPerSecond, 1, 1_000_000);
  const driver = driverFor(pool);
  const store = postgres(pool, { schema, payloadKeys: options.payloadKeys });
  const tables = replayTables(driver, schema ?? "inbox", options.connectTimeoutMs ?? 5_000);
  const handlerVersion = options.inbox?.handlerVersion ?? "1";
  const skipped: Record<SkipReason, number> = {
    ...{ unknown: 0, stored: 0, "other-payload": 0, "other-version": 0 },
  };
  let effectsDropped = 0;
  let refused: InboxError | undefined;
  let run: Run | undefined;
  let stopped = false;

  const handler = handlerUnder(target, options.handler, {
    dropped: () => void effectsDropped++,
    refused(error) {
      refused ??= error;
      void run?.stop().catch(() => undefined);
    },
  });
  const inbox = createInbox({
    ...options.inbox,
    ...{ store, consumer: target.consumer, handlerVersion },
    // A refused effect is the policy's doing: the message loses no attempt by it.
    classifyError: (error) =>
      error instanceof InboxError && error.code === "effect-refused"
        ? "environment"
        : classifyError(error, options.inbox?.classifyError),
  });

  async function main(): Promise<ReplayReport> {
    await refuseForeignName(tables, target);
    const name = options.source.name;
    const { id, resumes: earlier } = await tables.start({
      ...{ target, source: name, handlerVersion, rate: messagesPerSecond, by, why },
    });
    const resumes = options.fromStart === true ? undefined : earlier;
    let noting: Promise<void> = Promise.resolve();
    const timer = setInterval(() => {
      // A missed note is told by the next one.
      noting = noting.then(() => tables.note(id, counts())).catch(() => undefined);
    }, noteEveryMs);
    try {
      const opened = await options.source.open({
        consumer: target.consumer,
        resumes: resumes !== undefined,
        checkpoints: checkpointsOf(resumes !== undefined),
        planning: false,
      });
      run = inbox.run(bounded(opened), handler, {
        ...(messagesPerSecond === undefined ? {} : { maxInHand: inHandFor(messagesPerSecond) }),
      });
      if (stopped) void run.stop().catch(() => undefined);
      let ended: ReplayReport["ended"] = "done";
      void run.finished.catch(() => undefined);
      await run.finished;
      if (refused !== undefined) throw refused;
      if (stopped) ended = "stopped";
      clearInterval(timer);
      await noting;
      await tables.note(id, counts(), ended);
      const { kind: policy, consumer, of } = target;
      return { id, policy, consumer, of, source: name, resumes, ended, counts: counts() };
    } catch (error) {
      clearInterval(timer);
      await noting;
      // If the database is what failed, the row stays without an end, as that of a process that died.
      await tables.note(id, counts(), "failed", errorText(refused ?? error)).catch(() => undefined);
      throw refused ?? error;
    }
  }

  /** A correction takes only what was applied; the rate counts what is let through. */
  function bounded(source: Source): Source {
    const { of } = target;
    const chosen =
      target.kind === "compensate" && of !== undefined
        ? onlyApplied(source, {
            ...{ target: { ...target, of }, tables },
            skipped: (reason) => void skipped[reason]++,
          })
        : source;
    return messagesPerSecond === undefined ? chosen : paced(chosen, messagesPerSecond);
  }

  const checkpointsOf = (resumes: boolean): CheckpointStore => ({
    load: async (key) => (resumes ? store.cursors.load(target.consumer, key) : undefined),
    save: (key, value) => store.cursors.save(target.consumer, key, value),
  });

  const counts = (): ReplayCounts => countsOf(run?.stats(), { ...skipped }, effectsDropped);

  const finished = main();
  finished.catch(() => undefined);
  async function stop(): Promise<ReplayReport> {
    stopped = true;
    void run?.stop().catch(() => undefined);
    return finished;
  }
  return {
    finished,
    stop,
    counts,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

/** So little waits in this process that a stall of the database is not made up for at once. */
const inHandFor = (perSecond: number): number => Math.max(1, Math.min(4_000, Math.ceil(perSecond / 4)));

/** A name under which somebody has handled messages by himself is no replay's: its effects would be mixed with others. */
async function refuseForeignName(tables: ReplayTables, { kind, consumer }: ReplayTarget): Promise<void> {
  // The versions of a projection are made for this, and run live beside it.
  if (kind === "projection") return;
  const { known, used } = await tables.mayTake(consumer, kind);
  if (known || !used) return;
  throw new InboxError(
    "replay-refused",
    `${showValue(consumer)} has taken messages otherwise than by a ${kind}. Choose a name that nobody uses.`,
  );
}

function countsOf(
  stats: RunStats | undefined,
  skipped: ReplayCounts["skipped"],
  effectsDropped: number,
): ReplayCounts {
  const outcome = (name: keyof RunStats["outcomes"]): number =>
    stats === undefined ? 0 : stats.outcomes[name] + stats.pending.outcomes[name];
  return {
    ...{ deliveries: stats?.deliveries ?? 0, applied: outcome("applied"), duplicates: outcome("duplicate") },
    ...{ stored: outcome("stored"), conflicts: outcome("conflict"), rejected: outcome("rejected") },
    ...{ late: outcome("late"), skipped, effectsDropped },
  };
}

const isText = (text: unknown): boolean => typeof text === "string" && text.trim() !== "";
