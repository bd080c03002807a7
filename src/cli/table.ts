import Table from "cli-table3";
import { printable } from "../message/show-value.ts";

/** A plain table for people. Cells are to be made safe before: see `cell`. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({ head: [...head], style: { head: [], border: [], compact: true } });
  for (const row of rows) table.push([...row]);
  return table.toString();
}

/** What producers wrote may steer a terminal, and may be long. */
export function cell(text: string | undefined, limit = 40): string {
  const safe = printable(text ?? "-");
  return safe.length > limit ? `${safe.slice(0, limit - 1)}…` : safe;
}

/** Named facts, one a line; those that say nothing are left out. */
export const factLines = (facts: readonly (readonly [string, string | undefined])[]): readonly string[] =>
  facts
    .filter((fact): fact is readonly [string, string] => fact[1] !== undefined && fact[1] !== "")
    .map(([name, value]) => `${printable(name).padEnd(20)} ${printable(value)}`);

const number = new Intl.NumberFormat("en-US");

/** `1 entry`, `4,000 entries`. */
export const counted = (count: number, one: string, many: string): string =>
  `${number.format(count)} ${count === 1 ? one : many}`;
