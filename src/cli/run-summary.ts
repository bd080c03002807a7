import type { Outcome } from "../inbox/outcome.ts";
import type { RunStats } from "../inbox/run.ts";
import { exitCodes, type ExitCode } from "./exit-codes.ts";

/** What `inbox run` tells at its end, in this order. */
export interface RunSummary {
  readonly deliveries: number;
  readonly applied: number;
  readonly duplicates: number;
  readonly superseded: number;
  /** Deliveries of messages whose body was kept before, in quarantine or in pending. */
  readonly stored: number;
  /** Messages that this run stored and did not finish: they wait for another attempt, or behind one in quarantine. */
  readonly waiting: number;
  readonly conflicts: number;
  readonly rejected: number;
  readonly late: number;
  /** Attempts that were, or will be, made again. */
  readonly busy: number;
  readonly failed: number;
  readonly durationMs: number;
  /** Deliveries a second that got their outcome; those that were given back at a stop do not count. */
  readonly rate: number;
}

export function summaryOf({ deliveries, outcomes, pending, durationMs }: RunStats): RunSummary {
  const handled = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  const both = (outcome: Outcome): number => outcomes[outcome] + pending.outcomes[outcome];
  const { applied, duplicate, superseded, conflict, rejected, late } = pending.outcomes;
  const finished = applied + duplicate + superseded + conflict + rejected + late;
  return {
    deliveries,
    applied: both("applied"),
    duplicates: both("duplicate"),
    superseded: both("superseded"),
    stored: outcomes.stored - pending.stored,
    // What an earlier run had stored may be among what was finished.
    waiting: Math.max(0, pending.stored - finished),
    conflicts: both("conflict"),
    rejected: both("rejected"),
    late: both("late"),
    busy: both("busy"),
    failed: both("failed"),
    durationMs: Math.round(durationMs),
    rate: durationMs === 0 ? 0 : Math.round((handled * 1_000) / durationMs),
  };
}

/** How many deliveries ended with their body in quarantine. */
export const quarantined = (summary: RunSummary): number =>
  summary.conflicts + summary.rejected + summary.late + summary.stored;

export const exitCodeOf = (summary: RunSummary): ExitCode =>
  quarantined(summary) + summary.waiting > 0 ? exitCodes.foundSomething : exitCodes.fine;

const number = new Intl.NumberFormat("en-US");

/** One line for people; zeros that tell nothing are left out. */
export function summaryLine(summary: RunSummary): string {
  const parts = [
    `${number.format(summary.deliveries)} deliveries`,
    `${number.format(summary.applied)} applied`,
    `${number.format(summary.duplicates)} duplicates`,
  ];
  for (const name of [
    "superseded",
    "stored",
    "waiting",
    "conflicts",
    "rejected",
    "late",
    "busy",
    "failed",
  ] as const) {
    if (summary[name] > 0) parts.push(`${number.format(summary[name])} ${name}`);
  }
  return `${parts.join(", ")}; ${number.format(summary.rate)} a second`;
}
