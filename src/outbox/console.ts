import { InboxError } from "../errors.ts";
import { checkedDecider } from "../quarantine/decider.ts";
import type { CarryOnOptions, ManyDecider } from "../quarantine/quarantine.ts";
import { createRedaction, type RedactionOptions } from "../quarantine/redact.ts";
import type {
  DestinationStatus,
  OutboxOperatorStore,
  RefusedEffect,
  RefusedFilter,
  RefusedGroup,
  RefusedListOptions,
  WaitingEffect,
  WaitingListOptions,
} from "../store/outbox-operator.ts";
import type { Body } from "../store/protection.ts";
import type { BulkDecision, Decider } from "../store/quarantine-store.ts";
import type { Store } from "../store/store.ts";
import { effectHistory, type EffectHistory, type EffectName } from "./effect-history.ts";
import { alreadyDecided, checkEffectRepair, entryMissing, type EffectRepairInput } from "./repair-effect.ts";
import {
  showRefusedEffect,
  showEffectRepair,
  type EffectRepairPreview,
  type ShownRefusedEffect,
} from "./show-effect.ts";

export interface OutboxConsoleOptions extends RedactionOptions {
  readonly store: Store;
}

/** Which open refused effects a decision on many is about. */
export type OpenRefusedFilter = Omit<RefusedFilter, "status">;

/**
 * The outbox for operators: what waits, what was refused, and decisions on that, as `createQuarantine` has them for
 * messages. Every call is a transaction of its own.
 */
export interface OutboxConsole {
  /** How each destination does, as far as the database knows. */
  status(): Promise<readonly DestinationStatus[]>;
  /** Refused effects, newest first; see `limit` and `after` for pages. */
  list(options?: RefusedListOptions): Promise<readonly RefusedEffect[]>;
  /** Refusals that look alike, the largest group first. Default limit 100. */
  groups(filter?: RefusedFilter, limit?: number): Promise<readonly RefusedGroup[]>;
  /** How many entries fit: the preview of a decision on many. */
  count(filter?: RefusedFilter): Promise<number>;
  /** One entry with what is to be hidden hidden; `undefined` where there is none. */
  show(id: string): Promise<ShownRefusedEffect | undefined>;
  /** The refused body, with nothing hidden; `undefined` where there is none, or none any more. */
  body(id: string): Promise<Body | undefined>;
  /** Effects that are not sent yet, in the order they were asked for; see `limit` and `after` for pages. */
  waiting(options?: WaitingListOptions): Promise<readonly WaitingEffect[]>;
  /** All that is known of one effect, whatever became of it; `undefined` for one that was never asked for, or forgotten. */
  effect(name: EffectName): Promise<EffectHistory | undefined>;

  /**
   * Gives an effect back to be sent, at its old place among those of its key, under the same id. Resolves with the
   * decision's number. Rejects with `entry-missing`, `already-decided` or `decision-needs`. Refused once more, it is
   * another entry.
   */
  retry(id: string, decider: Decider): Promise<string>;
  /**
   * `retry` with another body; the entry keeps both. The id stays, and so does the idempotency key: a destination that
   * remembers it from the refused attempt may answer as it did then, or refuse the other body.
   */
  repair(id: string, changes: EffectRepairInput, decider: Decider): Promise<string>;
  /** What a repair would change. Refuses what `repair` would refuse about the body, and decides nothing. */
  previewRepair(id: string, changes: EffectRepairInput): Promise<EffectRepairPreview>;
  /** The effect will not be sent; what waits behind it goes on. The entry keeps its body. Rejects as `retry` does. */
  discard(id: string, decider: Decider): Promise<string>;
  /**
   * Decides on all open entries that fit. Answers as soon as the decision is recorded, which is when it counts; then
   * call `carryOn` until it is finished. Rejects with `count-changed`.
   */
  retryMany(filter: OpenRefusedFilter, decider: ManyDecider): Promise<BulkDecision>;
  discardMany(filter: OpenRefusedFilter, decider: ManyDecider): Promise<BulkDecision>;
  /** Carries a decision on many out, batch by batch. Any number of processes may; rejects with `entry-missing`. */
  carryOn(decisionId: string, options?: CarryOnOptions): Promise<BulkDecision>;
  /** Decisions on many that have batches left. */
  unfinished(): Promise<readonly BulkDecision[]>;
  /** The last decisions, newest first. Default limit 100. */
  decisions(limit?: number): Promise<readonly BulkDecision[]>;
}

/** The outbox for operators. Throws `invalid-option` for what is no JSON pointer. */
export function createOutboxConsole({ store, ...hidden }: OutboxConsoleOptions): OutboxConsole {
  const redaction = createRedaction(hidden);
  const operator = store.outboxOperator;

  async function opened(id: string) {
    const entry = await operator.showRefused(id);
    if (entry === undefined) return undefined;
    const body = entry.body && (await operator.open(entry, entry.body));
    const repaired = entry.repaired && (await operator.open(entry, entry.repaired));
    return { entry, body, repaired };
  }

  async function repairOf(id: string, changes: EffectRepairInput) {
    const found = await opened(id);
    if (found === undefined) throw entryMissing(id);
    // What was sent since has no body to compare with; that somebody has decided says more.
    if (found.entry.status !== "open") throw alreadyDecided(found.entry);
    if (found.body === undefined) {
      throw new InboxError("entry-missing", `The body of entry ${id} is not there any more.`);
    }
    return { before: found.body, after: checkEffectRepair(id, found.body, changes) };
  }

  return {
    status: () => operator.status(),
    list: (options = {}) => operator.listRefused(options),
    groups: (filter = {}, limit = 100) => operator.groups(filter, limit),
    count: (filter = {}) => operator.count(filter),
    async show(id) {
      const found = await opened(id);
      return found && showRefusedEffect(redaction, found.entry, found.body, found.repaired);
    },
    body: async (id) => (await opened(id))?.body,
    waiting: (options = {}) => operator.listWaiting(options),
    effect: (name) => effectHistory(operator, name),

    retry: async (id, decider) => decided(await operator.decide("retry", id, checkedDecider(decider))),
    discard: async (id, decider) => decided(await operator.decide("discard", id, checkedDecider(decider))),
    async repair(id, changes, decider) {
      const checked = checkedDecider(decider);
      const { after } = await repairOf(id, changes);
      return decided(await operator.repair(id, after, checked));
    },
    async previewRepair(id, changes) {
      const { before, after } = await repairOf(id, changes);
      return showEffectRepair(redaction, before, after);
    },
    retryMany: (filter, decider) => decideMany(operator, "retry", filter, decider),
    discardMany: (filter, decider) => decideMany(operator, "discard", filter, decider),
    carryOn: (decisionId, options = {}) => carryOn(operator, decisionId, options),
    unfinished: () => operator.unfinished(),
    decisions: (limit = 100) => operator.decisions(limit),
  };
}

function decided(answer: string | InboxError): string {
  if (typeof answer === "string") return answer;
  throw answer;
}

async function decideMany(
  operator: OutboxOperatorStore,
  kind: "retry" | "discard",
  filter: OpenRefusedFilter,
  { expected, ...decider }: ManyDecider,
): Promise<BulkDecision> {
  const { matched, decision } = await operator.decideMany(kind, filter, checkedDecider(decider), expected);
  if (decision !== undefined) return decision;
  const text = `${matched} refused effects fit, not ${expected}: nothing is decided. Look again, and confirm the number.`;
  throw new InboxError("count-changed", text);
}

async function carryOn(
  operator: OutboxOperatorStore,
  id: string,
  { onBatch, signal }: CarryOnOptions,
): Promise<BulkDecision> {
  for (;;) {
    const decision = await operator.carryOn(id);
    if (decision === undefined) {
      throw new InboxError("entry-missing", `There is no decision ${JSON.stringify(id)} on effects.`);
    }
    onBatch?.(decision);
    if (decision.finishedAt !== undefined || signal?.aborted === true) return decision;
  }
}
