import Table from "cli-table3";
import { printable } from "../message/show-value.ts";

/**
 * A table for people, as wide as their terminal: without its frame, milliseconds and the end of its last column where it
 * would not fit, and as one record below the other where that is not enough. Cells are to be made safe before: see `cell`.
 */
export function tableOf(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number | undefined = process.stdout.columns,
): string {
  const framed = draw(head, rows, {});
  if (columns === undefined || widthOf(framed) <= columns) return framed;
  const short = rows.map((row) => row.map((text) => text.replace(/(T\d\d:\d\d:\d\d)\.\d{3}Z/, "$1Z")));
  const others = draw(head.slice(0, -1), withoutLast(short), frameless);
  const room = columns - widthOf(others) - 2;
  if (room >= Math.max(leastRoom, head.at(-1)?.length ?? 0)) {
    const cut = short.map((row) => [...row.slice(0, -1), cell(row.at(-1), room)]);
    return draw(head, cut, frameless);
  }
  const longest = Math.max(...head.map((name) => name.length));
  return short
    .map((row) => row.map((text, at) => `${(head[at] ?? "").padEnd(longest)}  ${text}`).join("\n"))
    .join("\n\n");
}

/** With less than this the last column, mostly an error's text, says nothing. */
const leastRoom = 16;

const frameless = {
  ...{ top: "", "top-mid": "", "top-left": "", "top-right": "" },
  ...{ bottom: "", "bottom-mid": "", "bottom-left": "", "bottom-right": "" },
  ...{ left: "", "left-mid": "", mid: "", "mid-mid": "", right: "", "right-mid": "", middle: "  " },
};

function draw(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  chars: Readonly<Record<string, string>>,
): string {
  const padding = chars === frameless ? { "padding-left": 0, "padding-right": 0 } : {};
  const table = new Table({
    ...{ head: [...head], chars, style: { head: [], border: [], compact: true, ...padding } },
  });
  for (const row of rows) table.push([...row]);
  return table.toString();
}

const withoutLast = (rows: readonly (readonly string[])[]): readonly (readonly string[])[] =>
  rows.map((row) => row.slice(0, -1));

const widthOf = (table: string): number => Math.max(...table.split("\n").map((line) => line.length));

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
