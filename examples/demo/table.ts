import Table from "cli-table3";
import type { Paint } from "./paint.ts";
import { money, type DemoResult } from "./result.ts";

const number = new Intl.NumberFormat("en-US");
const count = (value: number): string => number.format(value);

/** The final table. */
export function resultTable(result: DemoResult, paint: Paint): string {
  const { withInbox, withoutInbox, distinct, expectedCents } = result;
  const verdict = (cents: number): string =>
    cents === 0 ? paint("green", "exact") : paint("red", money(cents, true));
  const table = new Table({
    head: ["", "with inbox", "without inbox"],
    colAligns: ["left", "right", "right"],
    // Its own colours ask nobody whether they are wanted.
    style: { head: [], border: [] },
    chars: { mid: "", "left-mid": "", "mid-mid": "", "right-mid": "" },
  });
  table.push(
    ["distinct payments", count(distinct), count(distinct)],
    ["deliveries", count(withInbox.deliveries), count(withoutInbox.deliveries)],
    ["processes killed", count(withInbox.kills), count(withoutInbox.kills)],
    ["duplicates turned away", count(withInbox.duplicates), "-"],
    ["conflicts in quarantine", count(withInbox.conflicts), "-"],
    ["deliveries settled a second", count(withInbox.rate), count(withoutInbox.rate)],
    ["expected total", money(expectedCents), money(expectedCents)],
    ["total", paint("bold", money(withInbox.totalCents)), paint("bold", money(withoutInbox.totalCents))],
    ["difference", verdict(withInbox.differenceCents), verdict(withoutInbox.differenceCents)],
    ["wrong accounts", count(withInbox.wrongAccounts), count(withoutInbox.wrongAccounts)],
  );
  return table.toString();
}
