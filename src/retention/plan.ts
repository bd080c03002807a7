import { InboxError } from "../errors.ts";
import { maxDurationMs, showDuration } from "./duration.ts";
import type { BrokerFacts, RetentionFacts } from "./facts.ts";
import { scenariosOf, type Scenario } from "./scenarios.ts";

/** How long identities must be kept, why, and what it costs. */
export interface RetentionPlan {
  /** The longest reach first; what is not declared last. */
  readonly scenarios: readonly Scenario[];
  /** The scenario with the longest reach; `undefined` where nothing is known. */
  readonly decides: Scenario | undefined;
  /** How long to keep identities, in milliseconds: the longest reach and the margin. `Infinity`: for ever. */
  readonly windowMs: number;
  readonly marginMs: number;
  /** What nobody declared: the window holds only without it. */
  readonly undeclared: readonly Scenario[];
  /** What the ledger will hold when it has grown to the window; `undefined` where nothing was measured. */
  readonly cost: { readonly rows: number; readonly bytes: number } | undefined;
  /** What a person should know. */
  readonly warnings: readonly string[];
}

const dayMs = 86_400_000;

/**
 * The window that follows from what can go wrong: as long as the last copy of an applied message may come. Pure: asks
 * nobody and reads no clock. Throws `invalid-option` for a duration that is none.
 */
export function retentionPlan(facts: RetentionFacts): RetentionPlan {
  const { brokers, declared = {}, measured } = facts;
  const marginMs = facts.marginMs ?? dayMs;
  checkDurations(facts);
  const scenarios = [...scenariosOf(brokers, declared)].sort(
    (a, b) => (b.reachMs ?? -1) - (a.reachMs ?? -1) || 0,
  );
  const first = scenarios[0];
  const decides = first?.reachMs === undefined ? undefined : first;
  const windowMs = (decides?.reachMs ?? 0) + marginMs;
  const rows = measured === undefined ? 0 : measured.rowsPerDay * (windowMs / dayMs);
  return {
    ...{ scenarios, decides, windowMs, marginMs },
    undeclared: scenarios.filter(({ reachMs }) => reachMs === undefined),
    cost: measured === undefined ? undefined : { rows, bytes: rows * measured.bytesPerRow },
    warnings: brokers.flatMap((broker) => warningsOf(broker, facts)),
  };
}

function warningsOf(broker: BrokerFacts, { declared = {} }: RetentionFacts): readonly string[] {
  const { name, kind, retentionMs, deadLetter } = broker;
  const kept = showDuration(retentionMs);
  const warnings: string[] = [];
  const { maxRewindMs, restoreMs, longestOutageMs, maxRedriveMs } = declared;
  if (kind === "log" && maxRewindMs !== undefined && maxRewindMs < retentionMs) {
    warnings.push(
      `${name} can send what is ${kept} old, and by your rule it is set back by ${showDuration(maxRewindMs)} at most: what comes from further back may be older than what is kept.`,
    );
  }
  if (deadLetter !== undefined && maxRedriveMs !== undefined && maxRedriveMs < deadLetter.retentionMs) {
    warnings.push(
      `${deadLetter.name} keeps dead letters for ${showDuration(deadLetter.retentionMs)}, and by your rule they are redriven within ${showDuration(maxRedriveMs)}: what is redriven later may be older than what is kept.`,
    );
  }
  if (restoreMs !== undefined && retentionMs < restoreMs + (longestOutageMs ?? 0)) {
    warnings.push(
      kind === "log"
        ? `${name} keeps messages for ${kept}, less than a restore goes back (${showDuration(restoreMs)} and the outage): what was applied in between would be LOST. Keep them longer, or restore from younger backups.`
        : `After a restore, ${name} cannot send again what was acknowledged since the backup: have the producer send it, or it is LOST.`,
    );
  }
  if (longestOutageMs !== undefined && retentionMs < longestOutageMs) {
    warnings.push(
      `${name} keeps messages for ${kept}, less than the longest outage (${showDuration(longestOutageMs)}): what is not handled by then would be LOST.`,
    );
  }
  return warnings;
}

function checkDurations({ brokers, declared, measured, marginMs }: RetentionFacts): void {
  const check = (field: string, value: number | undefined, forEver: boolean): void => {
    if (value === undefined || (forEver && value === Number.POSITIVE_INFINITY)) return;
    if (typeof value === "number" && value >= 0 && value <= maxDurationMs) return;
    throw new InboxError(
      "invalid-option",
      `${field} must be milliseconds from 0 to ${maxDurationMs}${forEver ? ", or Infinity" : ""}; got ${String(value)}.`,
    );
  };
  check("marginMs", marginMs, false);
  for (const [field, value] of Object.entries<number | undefined>({ ...declared }))
    check(`declared.${field}`, value, false);
  for (const broker of brokers) {
    check(`${broker.name}.retentionMs`, broker.retentionMs, true);
    check(`${broker.name}.redeliverAfterMs`, broker.redeliverAfterMs, true);
    check(`${broker.name}.deadLetter.retentionMs`, broker.deadLetter?.retentionMs, true);
  }
  for (const [field, value] of Object.entries<number>({ ...measured })) {
    if (Number.isFinite(value) && value >= 0) continue;
    throw new InboxError(
      "invalid-option",
      `measured.${field} must be a number from 0; got ${String(value)}.`,
    );
  }
}
