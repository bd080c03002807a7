import type { Payments } from "./payments.ts";
import type { SideCounts } from "./side.ts";

/** The figures of one side when everything is acknowledged. */
export interface SideResult {
  readonly deliveries: number;
  readonly kills: number;
  /** Acknowledged deliveries a second, deaths included. */
  readonly rate: number;
  readonly totalCents: number;
  /** Total less expected total. */
  readonly differenceCents: number;
  /** Accounts whose balance is not what it must be. */
  readonly wrongAccounts: number;
}

export interface DemoResult {
  readonly seed: number;
  readonly distinct: number;
  /** Copies sent on purpose; what the kills caused comes on top. */
  readonly copies: number;
  readonly expectedCents: number;
  /** What the copies add where nothing holds them back. */
  readonly copiesCents: number;
  readonly withoutInbox: SideResult;
  readonly withInbox: SideResult & {
    /** Deliveries answered with "done already". */
    readonly duplicates: number;
    /** Second payloads of a known id, kept in quarantine. */
    readonly conflicts: number;
    /** Payments recorded as applied. */
    readonly applied: number;
  };
  readonly durationMs: number;
  /** Why the demo failed; empty if the inbox's books are exact. */
  readonly faults: readonly string[];
}

export function sideResult(
  { deliveries, kills, rate }: SideCounts,
  { expectedCents }: Payments,
  balances: readonly number[],
): SideResult {
  const totalCents = sum(balances);
  return {
    deliveries,
    kills,
    rate,
    totalCents,
    differenceCents: totalCents - sum(expectedCents),
    wrongAccounts: balances.filter((balance, i) => balance !== expectedCents[i]).length,
  };
}

/** What is wrong with the inbox's books, in words. The side without an inbox may be as wrong as it likes. */
export function faultsOf(
  { withInbox, distinct }: Omit<DemoResult, "faults">,
  changed: number,
): readonly string[] {
  const faults: string[] = [];
  if (withInbox.differenceCents !== 0)
    faults.push(`The total with an inbox is off by ${money(withInbox.differenceCents)}.`);
  if (withInbox.wrongAccounts > 0)
    faults.push(`${withInbox.wrongAccounts} accounts with an inbox are wrong.`);
  if (withInbox.applied !== distinct)
    faults.push(`The inbox recorded ${withInbox.applied} payments as applied; there are ${distinct}.`);
  if (withInbox.conflicts !== changed)
    faults.push(`The inbox kept ${withInbox.conflicts} changed payloads; ${changed} were sent.`);
  return faults;
}

export const sum = (list: readonly number[]): number => list.reduce((total, value) => total + value, 0);

const dollars = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });

/** Cents as money, with a sign if asked. */
export const money = (cents: number, signed = false): string =>
  `${signed && cents > 0 ? "+" : ""}${dollars.format(cents / 100)}`;
