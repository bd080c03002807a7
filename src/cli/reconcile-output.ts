import Table from "cli-table3";
import { printable } from "../message/show-value.ts";
import type { Difference } from "../reconcile/difference.ts";
import type { ReconcileReport } from "../reconcile/reconcile.ts";
import type { Io } from "./io.ts";

/** Prints what a comparison finds: differences as they come (with JSON), or in a table before the report. */
export interface Printer {
  readonly difference: (difference: Difference) => void;
  readonly report: (report: ReconcileReport) => void;
}

export function createPrinter(io: Io, json: boolean, limit: number | undefined): Printer {
  const most = limit ?? (json ? Number.POSITIVE_INFINITY : 100);
  const kept: Difference[] = [];
  let told = 0;
  return {
    difference(difference) {
      told += 1;
      if (told > most) return;
      if (json) io.print(JSON.stringify(difference));
      else kept.push(difference);
    },
    report(report) {
      if (json) io.print(JSON.stringify({ kind: "report", ...report }));
      else {
        if (kept.length > 0) io.print(tableOf(kept));
        io.print(summaryOf(report).join("\n"));
      }
      if (told > most) io.say(`${told - most} more differences were not printed: --limit.`);
    },
  };
}

/** Whether somebody should look at what was found; what is on its way needs nobody. */
export const needsAPerson = ({ differences: d }: ReconcileReport): boolean =>
  d.missing + d.extra + d.conflicting + d.quarantined + d.unaccounted > 0;

function tableOf(differences: readonly Difference[]): string {
  const table = new Table({
    head: ["", "producer", "message id", "sent", "applied", "entry"],
    style: { head: [], border: [], compact: true },
  });
  for (const { kind, producer, id, sentAt, appliedAt, entry } of differences) {
    table.push([
      kind,
      printable(producer),
      printable(id),
      sentAt?.toISOString() ?? "-",
      appliedAt?.toISOString() ?? "-",
      entry ?? "-",
    ]);
  }
  return table.toString();
}

function summaryOf(report: ReconcileReport): readonly string[] {
  const { differences, sent, applied, since, until, consumer, sentBy, payloads, repeated, atEdge } = report;
  const found = Object.entries(differences)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}`);
  return [
    `${printable(consumer)} against ${printable(sentBy)}, ${since?.toISOString() ?? "the beginning"} to ${until.toISOString()}, by ${payloads ? "id and payload" : "id"}`,
    `${sent} sent, ${applied} of them applied${found.length === 0 ? "; nothing differs" : `; ${found.join(", ")}`}`,
    ...(repeated > 0 ? [`${repeated} are in the list more than once`] : []),
    ...(atEdge > 0
      ? [`${atEdge} more are applied and not in the list, too near to the span's ends to tell`]
      : []),
  ];
}
