import Table from "cli-table3";
import { printable } from "../message/show-value.ts";
import { showDuration } from "../retention/duration.ts";
import type { Measured } from "../retention/measure.ts";
import type { RetentionPlan } from "../retention/plan.ts";
import type { Io } from "./io.ts";

export interface PlanResult {
  readonly plan: RetentionPlan;
  readonly measured: Measured | undefined;
  /** The window in use, in milliseconds, where it was given. */
  readonly window: number | undefined;
  readonly faults: readonly string[];
}

/** JSON has no Infinity: a duration that is for ever is null there, and `forEver` says so. */
export function printPlan(io: Io, json: boolean, { plan, measured, window, faults }: PlanResult): void {
  if (json) {
    const forEver = !Number.isFinite(plan.windowMs);
    io.print(JSON.stringify({ ...plan, forEver, measured, window, faults }));
    return;
  }
  const table = new Table({
    head: ["", "scenario", "reaches back", "how"],
    colWidths: [3, 22, 14, 78],
    wordWrap: true,
    style: { head: [], border: [], compact: true },
  });
  for (const scenario of plan.scenarios) {
    const { name, broker, reachMs, how } = scenario;
    table.push([
      scenario === plan.decides ? "*" : "",
      name,
      reachMs === undefined ? "not declared" : showDuration(reachMs),
      printable(broker === undefined ? how : `${broker}: ${how}`),
    ]);
  }
  io.print(table.toString());
  io.print(windowLine(plan));
  if (plan.undeclared.length > 0) {
    io.print(
      `Not declared: ${plan.undeclared.map(({ name }) => name).join(", ")}. The window holds without them only.`,
    );
  }
  if (plan.cost !== undefined && measured !== undefined) io.print(costLine(plan.cost, measured));
  for (const text of [...plan.warnings, ...faults]) io.print(`! ${printable(text)}`);
  if (window !== undefined && faults.length === 0)
    io.print(`A window of ${showDuration(window)} is long enough.`);
}

function windowLine({ decides, windowMs, marginMs }: RetentionPlan): string {
  const kept = Number.isFinite(windowMs) ? `for ${showDuration(windowMs)}` : "for ever";
  const why = decides === undefined ? "nothing is known to come later" : `${decides.name} decides`;
  return `Keep identities ${kept}: ${why}, and a margin of ${showDuration(marginMs)}.`;
}

function costLine(
  { rows, bytes }: { readonly rows: number; readonly bytes: number },
  measured: Measured,
): string {
  const rate = `${Math.round(measured.rowsPerDay).toLocaleString("en")} a day at ${Math.round(measured.bytesPerRow)} bytes each, measured over ${measured.days.toFixed(1)} days`;
  return Number.isFinite(rows)
    ? `That is ${Math.round(rows).toLocaleString("en")} identities and ${showBytes(bytes)}: ${rate}.`
    : `That grows without end: ${rate}.`;
}

function showBytes(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  let [value, unit] = [bytes, 0];
  while (value >= 1_000 && unit < units.length - 1) [value, unit] = [value / 1_000, unit + 1];
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
