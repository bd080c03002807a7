import type { Random } from "./random.ts";

/** The data of a payment's event. */
export interface Payment {
  /** 1 to 100. */
  readonly account: number;
  readonly cents: number;
}

export const accounts = 100;

/** What is sent, and what it must come to. */
export interface Payments {
  /** CloudEvents in the order they are sent. Some are followed at once by a copy, which goes to another consumer. */
  readonly documents: readonly string[];
  /** What is sent after an event was acknowledged: the same again, or the same id with another amount. */
  readonly later: ReadonlyMap<string, string>;
  /** How many different payments there are. */
  readonly distinct: number;
  /** Copies with another amount. */
  readonly changed: number;
  /** What the accounts must hold, by account less 1: each payment once, as it was sent first. */
  readonly expectedCents: readonly number[];
  /** What all copies together would add. */
  readonly copiesCents: number;
}

/** One in five payments comes a second time: 9 of 20 of these at once, 9 of 20 later, 2 of 20 later and changed. */
export function makePayments(count: number, random: Random): Payments {
  const documents: string[] = [];
  const later = new Map<string, string>();
  const expectedCents = Array.from({ length: accounts }, () => 0);
  let changed = 0;
  let copiesCents = 0;
  for (let number = 1; number <= count; number++) {
    const payment: Payment = { account: random.whole(1, accounts), cents: random.whole(100, 20_000) };
    const document = cloudEvent(number, payment);
    documents.push(document);
    expectedCents[payment.account - 1]! += payment.cents;
    // Every fifth, so that the share is the same however few there are.
    if (number % 5 !== 0) continue;
    const kind = (number / 5) % 20;
    const extra = kind < 18 ? 0 : random.whole(1, 5_000);
    copiesCents += payment.cents + extra;
    if (kind < 9) documents.push(document);
    else if (kind < 18) later.set(document, document);
    else {
      later.set(document, cloudEvent(number, { ...payment, cents: payment.cents + extra }));
      changed++;
    }
  }
  return { documents, later, distinct: count, changed, expectedCents, copiesCents };
}

const cloudEvent = (number: number, payment: Payment): string =>
  JSON.stringify({
    specversion: "1.0",
    id: `payment-${String(number).padStart(6, "0")}`,
    source: "/shop/checkout",
    type: "com.example.payment.received",
    subject: `account-${payment.account}`,
    datacontenttype: "application/json",
    data: payment,
  });
