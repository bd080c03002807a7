import { identityDigest } from "../message/identity.ts";
import type { IdentityFilter, MessageFacts } from "../store/operator-store.ts";
import type { Retention } from "../store/retention.ts";
import type { Store } from "../store/store.ts";

/**
 * Where a message is. `applied`: its effect is committed. `pending`: stored, to be handled. `quarantined`: it waits for
 * somebody's decision. `discarded`: somebody decided that it is not to be handled. `failed`: attempts failed and nothing
 * of it is stored, so whoever delivers it sees to the next one. `kept`: its identity is taken and nothing is applied,
 * and its body is not here any more (purged). `passed`: it is a record of a log, and the log's cursor is past it: applied, without a
 * row of its own. `unknown`: nothing is known of it.
 */
export type MessageState =
  "applied" | "pending" | "quarantined" | "discarded" | "failed" | "kept" | "passed" | "unknown";

/**
 * What a pending message waits for. `worker`: nobody has taken it yet. `lane`: a worker has its lane in hand, or died
 * with it and its lease has not run out. `schedule`: the time of its next attempt. `key`: an earlier message of its key.
 * `decision`: somebody's decision on an earlier message of its key.
 */
export type WaitsFor = "worker" | "lane" | "schedule" | "key" | "decision";

/** All that is known of one message, as of one moment. Times are the database's. */
export interface Explanation extends MessageFacts {
  readonly state: MessageState;
  /** The earliest trace of it; `undefined` where there is none. */
  readonly firstSeenAt: Date | undefined;
  /** `undefined` unless it is pending. */
  readonly waitsFor: WaitsFor | undefined;
  /** When it is to be tried next; `undefined` where that depends on something other than the time. */
  readonly nextAttemptAt: Date | undefined;
  /** Entries of it that wait for a decision: also of an applied message, when another body came under its identity. */
  readonly openEntries: readonly string[];
  /** Before this its identity is not forgotten; `undefined`: it is not applied, or its consumer has no window. */
  readonly forgottenAt: Date | undefined;
}

/** Which message: its id, and as much of the rest as is known. */
export interface ExplainRequest extends IdentityFilter {
  readonly id: string;
}

/**
 * What became of a message. With consumer, producer and id (and tenant, where there are tenants) it reads by keys and
 * answers one explanation, also of a message that nobody knows. With less it looks for all identities that fit, at most
 * 50, by a scan of the ledger; none if there is none.
 */
export async function explain(store: Store, request: ExplainRequest): Promise<readonly Explanation[]> {
  const { id, consumer, producer, tenant } = request;
  const messages =
    consumer !== undefined && producer !== undefined
      ? [{ consumer, producer, id, tenant: tenant ?? "" }]
      : await store.operator.find(id, request);
  const explanations: Explanation[] = [];
  for (const { consumer, ...identity } of messages) {
    const digest = identityDigest(consumer, identity);
    const facts = await store.operator.facts(consumer, identity, digest);
    explanations.push(explained(facts, windowOf(await store.retention.list(consumer), identity.producer)));
  }
  return explanations;
}

/** A producer's own window, else its consumer's, in milliseconds. */
function windowOf(retentions: readonly Retention[], producer: string): number | undefined {
  const own = retentions.find((one) => one.producer === producer);
  return (own ?? retentions.find((one) => one.producer === undefined))?.windowMs;
}

function explained(facts: MessageFacts, windowMs: number | undefined): Explanation {
  const { pending } = facts;
  const appliedAt = facts.ledger?.processedAt;
  const openEntries = facts.quarantined.filter(({ status }) => status === "open").map(({ id }) => id);
  const waitsFor = waitsForOf(facts);
  return {
    ...facts,
    state: stateOf(facts, openEntries.length),
    firstSeenAt: firstSeen(facts),
    waitsFor,
    nextAttemptAt: waitsFor === "schedule" ? pending?.dueAt : undefined,
    openEntries,
    forgottenAt:
      appliedAt === undefined || windowMs === undefined
        ? undefined
        : new Date(appliedAt.getTime() + windowMs),
  };
}

function stateOf(
  { ledger, pending, quarantined, attemptCount, log }: MessageFacts,
  open: number,
): MessageState {
  if (ledger?.processedAt !== undefined) return "applied";
  if (pending !== undefined) return "pending";
  if (open > 0) return "quarantined";
  if (quarantined.at(-1)?.status === "discarded") return "discarded";
  if (ledger !== undefined) return "kept";
  if (log?.passed === true) return "passed";
  return attemptCount > 0 ? "failed" : "unknown";
}

function waitsForOf({ at, pending }: MessageFacts): WaitsFor | undefined {
  if (pending === undefined) return undefined;
  const { state, dueAt, parked, lease } = pending;
  if (state === "behind") return parked !== undefined && parked.dueAt === undefined ? "decision" : "key";
  if (state === "scheduled" && dueAt !== undefined && dueAt > at) return "schedule";
  return lease === undefined || lease.expired ? "worker" : "lane";
}

function firstSeen({ ledger, attempts, pending, quarantined }: MessageFacts): Date | undefined {
  const times = [
    ...[ledger?.processedAt, attempts[0]?.at, pending?.receivedAt],
    ...quarantined.map(({ firstFailedAt }) => firstFailedAt),
  ].filter((time) => time !== undefined);
  return times.length === 0 ? undefined : times.reduce((first, time) => (time < first ? time : first));
}
