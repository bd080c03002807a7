import type { ReplayCounts } from "../replay/replay-run.ts";
import type { ReplayRow } from "../replay/replay-tables.ts";
import type { ByVersion, ReplayPlan } from "../replay/plan.ts";
import { cell, counted, factLines, tableOf } from "./table.ts";

const number = new Intl.NumberFormat("en-US");

const someOf = (count: number): string | undefined => (count === 0 ? undefined : number.format(count));

const versions = (counts: ByVersion): string | undefined =>
  Object.entries(counts)
    .map(([version, count]) => `${number.format(count)} by version ${version}`)
    .join(", ");

/** A plan for people. */
export function planLines(plan: ReplayPlan): readonly string[] {
  const { original, skipped } = plan;
  return factLines([
    ["policy", plan.policy],
    ["taken under", plan.consumer],
    ["original", plan.of],
    ["source", plan.source],
    ["effects", plan.effects],
    ["would run", number.format(plan.wouldRun)],
    ["applied before", versions(plan.applied)],
    ["in hand already", someOf(plan.stored)],
    ["conflicting", someOf(plan.conflicting)],
    ["left out", skippedText(skipped)],
    ["unreadable", someOf(plan.unreadable)],
    ["copies", someOf(plan.copies)],
    ["original applied", original && versions(original.applied)],
    ["original never took", original && someOf(original.unknown)],
    ["original waits with", original && someOf(original.stored)],
    ["other payload", original && someOf(original.otherPayload)],
    ["without a body", original && someOf(original.withoutBody)],
    ["horizon", original?.horizon?.toISOString()],
    ["beyond the horizon", original && someOf(original.beyondHorizon)],
    ["would be late", someOf(plan.late)],
  ]);
}

const skippedText = (skipped: ReplayPlan["skipped"]): string | undefined =>
  Object.entries(skipped)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${number.format(count)} ${reason}`)
    .join(", ");

/** What each policy would run, for people. */
export const policyTable = (plans: readonly ReplayPlan[]): string =>
  tableOf(
    ["policy", "would run", "left out", "how"],
    plans.map(({ policy, wouldRun, skipped }) => [
      policy,
      number.format(wouldRun),
      cell(skippedText(skipped) || "-", 60),
      {
        rebuild: "--rebuild-as NAME",
        projection: "--projection NAME@VERSION",
        compensate: "--compensate MIGRATION",
      }[policy],
    ]),
  );

/** One line for people; zeros that tell nothing are left out. */
export function countsLine(counts: ReplayCounts): string {
  const { deliveries, applied, duplicates, stored, conflicts, rejected, late, skipped, effectsDropped } =
    counts;
  const parts = [counted(deliveries, "message", "messages"), `${number.format(applied)} applied`];
  const more = { duplicates, stored, conflicts, rejected, late };
  for (const [name, count] of Object.entries(more))
    if (count > 0) parts.push(`${number.format(count)} ${name}`);
  const left = skippedText(skipped);
  if (left) parts.push(`left out: ${left}`);
  if (effectsDropped > 0) parts.push(`${counted(effectsDropped, "effect", "effects")} dropped`);
  return parts.join(", ");
}

/** Runs of replays, for people. */
export const replayTable = (rows: readonly ReplayRow[]): string =>
  tableOf(
    ["id", "policy", "taken under", "source", "started", "ended", "applied", "by", "why"],
    rows.map((row) => [
      row.id,
      row.policy,
      cell(row.consumer),
      cell(row.source),
      row.startedAt.toISOString(),
      row.ended ?? `seen ${row.seenAt.toISOString()}`,
      cell(appliedOf(row)),
      cell(row.by, 20),
      cell(row.why),
    ]),
  );

function appliedOf({ counts }: ReplayRow): string {
  const { applied } = counts;
  return typeof applied === "number" ? number.format(applied) : "-";
}
