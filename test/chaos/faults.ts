import type { ChaosReport } from "./chaos.ts";

/** What makes the run a failed one, in words. */
export function faultsOf(report: ChaosReport, kills: number): readonly string[] {
  const faults: string[] = [];
  if (report.lost > 0) faults.push(`${report.lost} messages are lost.`);
  if (report.doubled > 0) faults.push(`${report.doubled} messages took effect more than once.`);
  if (report.unsettled > 0) faults.push(`${report.unsettled} deliveries were not settled in time.`);
  if (report.kills < kills) faults.push(`Only ${report.kills} of ${kills} kills happened.`);
  if (report.wrong.length > 10)
    faults.push(...report.wrong.slice(0, 10), `and ${report.wrong.length - 10} more`);
  else faults.push(...report.wrong);
  return faults;
}
