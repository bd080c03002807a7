import type { Attempts, Books } from "./books.ts";

export interface PlayResult extends PlayFigures {
  /** Everything that is not as it must be, a sentence each. */
  readonly violations: readonly string[];
  readonly durationMs: number;
}

export interface PlayFigures {
  /** In the orders database. */
  readonly orders: number;
  /** Different orders in the ledger. */
  readonly entries: number;
  /** Different idempotency keys at the receipts service. */
  readonly receipts: number;
  /** Requests to the receipts service, with those that came again. */
  readonly requests: number;
  /** Attempts of relays that nobody knew the end of, by whose relay it was. */
  readonly ambiguous: { readonly orders: number; readonly ledger: number };
  /** Questions of customers that had no good answer, and were asked again. */
  readonly askedAgain: number;
  readonly kills: Readonly<Record<string, number>>;
  /** Processes that found no database when they started, or lost it, and were started again. */
  readonly startedAgain: number;
}

export function figuresOf(
  { orders, entries, requests, attempts }: Books,
  kills: Readonly<Record<string, number>>,
  askedAgain: number,
  startedAgain: number,
): PlayFigures {
  return {
    orders: orders.length,
    entries: new Set(entries.map(({ order }) => order)).size,
    receipts: new Set(requests.map(({ key }) => key)).size,
    requests: requests.length,
    ambiguous: { orders: ambiguous(attempts.orders), ledger: ambiguous(attempts.ledger) },
    ...{ askedAgain, kills, startedAgain },
  };
}

const ambiguous = (attempts: Attempts): number =>
  [...attempts.values()].flat().filter((outcome) => outcome === "ambiguous").length;

export const killsIn = (kills: Readonly<Record<string, number>>): number =>
  Object.values(kills).reduce((sum, n) => sum + n, 0);

/** The result for people. */
export function resultText({
  orders,
  entries,
  receipts,
  requests,
  ambiguous: unclear,
  kills,
  ...rest
}: PlayResult): string {
  const list = Object.entries(kills)
    .map(([name, n]) => `${name} ${n}`)
    .join(", ");
  return [
    `orders placed     ${orders}   (customers asked again ${rest.askedAgain} times)`,
    `ledger entries    ${entries}   each once, each customer's in order`,
    `receipts          ${receipts}   of ${requests} requests: ${requests - receipts} came again under the same key`,
    `in doubt          ${unclear.orders + unclear.ledger}   attempts of relays that nobody knew the end of`,
    `killed            ${killsIn(kills)}   ${list}`,
    `time              ${(rest.durationMs / 1_000).toFixed(1)} s`,
  ].join("\n");
}

const shownFaults = 20;

/** Writes faults to stderr, and not more of them than a person reads. */
export function printFaults(faults: readonly string[]): void {
  for (const fault of faults.slice(0, shownFaults)) console.error(`FAILED: ${fault}`);
  if (faults.length > shownFaults) console.error(`FAILED: ${faults.length - shownFaults} more, see --json`);
}
