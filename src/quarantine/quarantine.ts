import type { StandardSchemaV1 } from "@standard-schema/spec";
import { InboxError } from "../errors.ts";
import { identityDigest } from "../message/identity.ts";
import type { Identity } from "../message/message.ts";
import type {
  QuarantineEntry,
  QuarantineFilter,
  QuarantineGroup,
  QuarantineListOptions,
  QuarantineRow,
} from "../store/quarantine-entry.ts";
import type { BulkDecision, Decider, DecisionOnEntries, QuarantineStore } from "../store/quarantine-store.ts";
import type { Store } from "../store/store.ts";
import type { Chunks } from "./chunk-lines.ts";
import { checkedDecider } from "./decider.ts";
import { exportEntries, type ExportedBodies } from "./export-entries.ts";
import { importEntries, type ImportOptions, type ImportSummary } from "./import-entries.ts";
import { createRedaction, type RedactionOptions } from "./redact.ts";
import { entryMissing, repairRequest, type RepairInput } from "./repair.ts";
import { showEntry, showRepair, type RepairPreview, type ShownEntry } from "./show-entry.ts";

export interface QuarantineOptions extends RedactionOptions {
  readonly store: Store;
  /** What the payload of a repair must fit, if given: the consumer's own schema. */
  readonly payloadSchema?: StandardSchemaV1 | undefined;
}

/** Which open entries a decision on many is about. */
export type OpenFilter = Omit<QuarantineFilter, "status">;

/** A decision on many: nothing is decided unless exactly as many open entries fit as were counted before. */
export interface ManyDecider extends Decider {
  readonly expected: number;
}

export interface CarryOnOptions {
  /** Called after each batch. */
  readonly onBatch?: ((decision: BulkDecision) => void) | undefined;
  /** Stops between two batches; what is left is carried on another time. */
  readonly signal?: AbortSignal | undefined;
}

export interface PurgeOptions {
  /** Entries that were decided on longer ago than this, in milliseconds. */
  readonly decidedBeforeMs: number;
  readonly consumer?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Quarantine for operators: for a command, a console, or a page of your own. Every call is a transaction of its own. */
export interface Quarantine {
  /** Newest first; see `limit` and `after` for pages. */
  list(options?: QuarantineListOptions): Promise<readonly QuarantineRow[]>;
  /** Failures that look alike, the largest group first. Default limit 100. */
  groups(filter?: QuarantineFilter, limit?: number): Promise<readonly QuarantineGroup[]>;
  /** How many entries fit: the preview of a decision on many. */
  count(filter?: QuarantineFilter): Promise<number>;
  /** One entry with what is to be hidden hidden; `undefined` where there is none. */
  show(id: string): Promise<ShownEntry | undefined>;
  /** One entry with nothing hidden, as a dry run takes it; `undefined` where there is none. */
  entry(id: string): Promise<QuarantineEntry | undefined>;
  /** All entries of one message, oldest first, with their decisions. */
  history(message: Identity & { readonly consumer: string }): Promise<readonly QuarantineRow[]>;

  /**
   * Gives an entry back to be handled, at its old place, by the running workers. Resolves with the decision's number.
   * Rejects with `entry-missing`, `already-decided`, `already-applied`, `already-pending` or `decision-needs`.
   */
  retry(id: string, decider: Decider): Promise<string>;
  /**
   * Gives a `late` entry back to be handled, which `retry` does not: it may have been applied and forgotten, so find out
   * first. However often it is decided or delivered, it takes effect once. Rejects as `retry` does.
   */
  apply(id: string, decider: Decider): Promise<string>;
  /** `retry` with a changed message; the entry keeps what came beside it. Also rejects with `invalid-payload`. */
  repair(id: string, changes: RepairInput, decider: Decider): Promise<string>;
  /** What a repair would change. Refuses what `repair` would refuse about the message, and decides nothing. */
  previewRepair(id: string, changes: RepairInput): Promise<RepairPreview>;
  /** The entry will not be handled; what waits behind it goes on. Rejects as `retry` does. */
  discard(id: string, decider: Decider): Promise<string>;
  /**
   * Decides on all open entries that fit. Answers as soon as the decision is recorded, which is when it counts; then
   * call `carryOn` until it is finished. What is late is skipped. Rejects with `count-changed`.
   */
  retryMany(filter: OpenFilter, decider: ManyDecider): Promise<BulkDecision>;
  /** Of the open entries that fit those that are late; `expected` is their number. */
  applyMany(filter: Omit<OpenFilter, "code">, decider: ManyDecider): Promise<BulkDecision>;
  discardMany(filter: OpenFilter, decider: ManyDecider): Promise<BulkDecision>;
  /** Carries a decision on many out, batch by batch. Any number of processes may; rejects with `entry-missing`. */
  carryOn(decisionId: string, options?: CarryOnOptions): Promise<BulkDecision>;
  /** Decisions on many that have batches left. */
  unfinished(): Promise<readonly BulkDecision[]>;
  /** The last decisions, newest first. Default limit 100. */
  decisions(limit?: number): Promise<readonly BulkDecision[]>;

  /** How many entries a purge would remove. */
  countPurgeable(options: PurgeOptions): Promise<number>;
  /**
   * Removes entries that were decided on long ago, with their payloads; nothing is ever removed without a decision. The
   * decisions stay, and so do identities: a redelivery is still known. Resolves with how many.
   */
  purge(options: PurgeOptions, decider: Decider): Promise<number>;

  /** One line of JSON an entry, oldest first, each with its line feed. Default: bodies as they are stored. */
  export(filter?: QuarantineFilter, bodies?: ExportedBodies): AsyncIterable<string>;
  /** Takes an export in: its open entries, each once. Rejects with `import-refused`, naming the line. */
  import(chunks: Chunks, options?: ImportOptions): Promise<ImportSummary>;
}

/** What is in quarantine, and the decisions on it. Throws `invalid-option` for what is no JSON pointer. */
export function createQuarantine({ store, payloadSchema, ...hidden }: QuarantineOptions): Quarantine {
  const redaction = createRedaction(hidden);
  const { quarantined } = store;

  const entryOf = async (id: string): Promise<QuarantineEntry> => {
    const entry = await quarantined.show(id);
    if (entry === undefined) throw entryMissing(id);
    return entry;
  };
  const decide = async (kind: DecisionOnEntries, id: string, decider: Decider): Promise<string> =>
    decided(await quarantined.decide(kind, id, checkedDecider(decider)));

  return {
    list: (options = {}) => quarantined.list(options),
    groups: (filter = {}, limit = 100) => quarantined.groups(filter, limit),
    count: (filter = {}) => quarantined.count(filter),
    async show(id) {
      const entry = await quarantined.show(id);
      return entry && showEntry(redaction, entry);
    },
    entry: (id) => quarantined.show(id),
    history: ({ consumer, ...identity }) => quarantined.history(identityDigest(consumer, identity)),

    retry: (id, decider) => decide("retry", id, decider),
    apply: (id, decider) => decide("apply", id, decider),
    discard: (id, decider) => decide("discard", id, decider),
    async repair(id, changes, decider) {
      const checked = checkedDecider(decider);
      const request = await repairRequest(await entryOf(id), changes, payloadSchema);
      return decided(await quarantined.repair(id, request, checked));
    },
    async previewRepair(id, changes) {
      const entry = await entryOf(id);
      return showRepair(redaction, entry, await repairRequest(entry, changes, payloadSchema));
    },
    retryMany: (filter, decider) => decideMany(quarantined, "retry", filter, decider),
    applyMany: (filter, decider) => decideMany(quarantined, "apply", { ...filter, code: "late" }, decider),
    discardMany: (filter, decider) => decideMany(quarantined, "discard", filter, decider),
    carryOn: (decisionId, options = {}) => carryOn(quarantined, decisionId, options),
    unfinished: () => quarantined.unfinished(),
    decisions: (limit = 100) => quarantined.decisions(limit),

    countPurgeable: (options) => quarantined.countPurgeable(checkedAge(options), options.consumer),
    purge: (options, decider) => purge(quarantined, options, decider),

    export: (filter = {}, bodies = "stored") => exportEntries(quarantined, redaction, filter, bodies),
    import: (chunks, options = {}) => importEntries(quarantined, chunks, options),
  };
}

function decided(answer: string | InboxError): string {
  if (typeof answer === "string") return answer;
  throw answer;
}

async function decideMany(
  store: QuarantineStore,
  kind: DecisionOnEntries,
  filter: OpenFilter,
  { expected, ...decider }: ManyDecider,
): Promise<BulkDecision> {
  const { matched, decision } = await store.decideMany(kind, filter, checkedDecider(decider), expected);
  if (decision !== undefined) return decision;
  const text = `${matched} open entries fit, not ${expected}: nothing is decided. Look again, and confirm the number.`;
  throw new InboxError("count-changed", text);
}

async function carryOn(
  store: QuarantineStore,
  id: string,
  { onBatch, signal }: CarryOnOptions,
): Promise<BulkDecision> {
  for (;;) {
    const decision = await store.carryOn(id);
    if (decision === undefined)
      throw new InboxError("entry-missing", `There is no decision ${JSON.stringify(id)}.`);
    onBatch?.(decision);
    if (decision.finishedAt !== undefined || decision.kind === "purge" || signal?.aborted === true)
      return decision;
  }
}

function checkedAge({ decidedBeforeMs }: PurgeOptions): number {
  if (Number.isSafeInteger(decidedBeforeMs) && decidedBeforeMs >= 0) return decidedBeforeMs;
  const text = `decidedBeforeMs must be whole milliseconds, 0 or more; got ${String(decidedBeforeMs)}.`;
  throw new InboxError("invalid-option", text);
}

async function purge(store: QuarantineStore, options: PurgeOptions, decider: Decider): Promise<number> {
  const { consumer, signal } = options;
  const ageMs = checkedAge(options);
  const checked = checkedDecider(decider);
  const matched = await store.countPurgeable(ageMs, consumer);
  if (matched === 0) return 0;
  const decision = await store.recordPurge(
    checked,
    JSON.stringify({ decidedBeforeMs: ageMs, consumer }),
    matched,
  );
  let removed = 0;
  while (signal?.aborted !== true) {
    const batch = await store.purge(ageMs, consumer, decision);
    if (batch === 0) break;
    removed += batch;
  }
  return removed;
}
