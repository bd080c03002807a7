import type { Order, OrderPlaced } from "../order-placed.ts";
import type { Attempts, Books } from "./books.ts";

/** Everything that is not as it must be, a sentence each. `placed`: the orders that customers have an answer for. */
export function compare(placed: ReadonlyMap<string, Order>, books: Books): readonly string[] {
  const { orders, entries, balances, requests, attempts, left } = books;
  const receipts = requests.map(({ receipt }) => receipt);
  return [
    ...[...placed.keys()]
      .filter((id) => !orders.some(({ order }) => order === id))
      .map((id) => `order ${id}: its customer was told it is placed, and it is not`),
    ...orders
      .filter(({ order, customer, cents }) => {
        const asked = placed.get(order);
        return asked?.customer !== customer || asked.cents !== cents;
      })
      .map(({ order }) => `order ${order}: not what its customer asked for`),
    ...inOrder("orders", orders),
    ...sameSet("ledger entry", orders, entries),
    ...twice(
      "ledger entries",
      entries.map(({ order }) => order),
    ),
    ...inOrder("ledger", entries),
    ...wrongBalances(orders, balances),
    ...sameSet("receipt", orders, receipts),
    ...wrongKeys(books),
    ...inOrder("receipts", receipts),
    ...sentOnce("orders", "placed", orders, attempts.orders),
    ...sentOnce("ledger", "receipt", orders, attempts.ledger),
    ...Object.entries(left)
      .filter(([, n]) => n > 0)
      .map(([what, n]) => `${n} ${what} left`),
  ];
}

/** Each order is there, as it was placed, and nothing else is. */
function sameSet(
  what: string,
  orders: readonly OrderPlaced[],
  found: readonly OrderPlaced[],
): readonly string[] {
  const expected = new Map(orders.map((order) => [order.order, order]));
  const there = new Set(found.map(({ order }) => order));
  const differs = ({ order, customer, number, cents }: OrderPlaced): boolean => {
    const placed = expected.get(order);
    return placed?.customer !== customer || placed.number !== number || placed.cents !== cents;
  };
  return [
    ...orders.filter(({ order }) => !there.has(order)).map(({ order }) => `order ${order}: no ${what}`),
    ...found.filter(differs).map(({ order }) => `order ${order}: a ${what} that is not the order's`),
  ];
}

function twice(what: string, ids: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts].filter(([, n]) => n > 1).map(([id, n]) => `order ${id}: ${n} ${what}`);
}

/** A customer's orders come in their order, each counted when it comes first. */
function inOrder(where: string, found: readonly OrderPlaced[]): readonly string[] {
  const wrong: string[] = [];
  const seen = new Set<string>();
  const last = new Map<string, number>();
  for (const { order, customer, number } of found) {
    if (seen.has(order)) continue;
    seen.add(order);
    const before = last.get(customer) ?? 0;
    if (number !== before + 1) wrong.push(`${where}: order ${number} of ${customer} came after ${before}`);
    last.set(customer, number);
  }
  return wrong;
}

function wrongBalances(
  orders: readonly OrderPlaced[],
  balances: ReadonlyMap<string, number>,
): readonly string[] {
  const sums = new Map<string, number>();
  for (const { customer, cents } of orders) sums.set(customer, (sums.get(customer) ?? 0) + cents);
  return [...new Set([...sums.keys(), ...balances.keys()])]
    .filter((customer) => sums.get(customer) !== balances.get(customer))
    .map(
      (customer) =>
        `balance of ${customer}: ${balances.get(customer)}, and its orders are ${sums.get(customer)}`,
    );
}

/** One key for each receipt, however often it was asked for. */
const wrongKeys = ({ requests }: Books): readonly string[] =>
  requests
    .filter(({ key, receipt }) => key !== `"receipt/${receipt.order}"`)
    .map(({ key, receipt }) => `order ${receipt.order}: a receipt under the key ${key}`);

/** The outbox's own records say of each effect that it was sent, once. */
const sentOnce = (
  outbox: string,
  effect: string,
  orders: readonly OrderPlaced[],
  attempts: Attempts,
): readonly string[] =>
  orders
    .map(({ order }) => ({
      order,
      sent: (attempts.get(`${effect}/${order}`) ?? []).filter((outcome) => outcome === "sent").length,
    }))
    .filter(({ sent }) => sent !== 1)
    .map(
      ({ order, sent }) => `order ${order}: the outbox of ${outbox} recorded ${sent} times that it was sent`,
    );
