import { existsSync, readFileSync } from "node:fs";
import type pg from "pg";
import type { OrderPlaced } from "../order-placed.ts";
import { readLines, type ReceiptLine } from "../receipts/receipt-line.ts";
import { withPool, type World } from "./world.ts";

/** What is written down everywhere. */
export interface Books {
  /** As the orders database has them. */
  readonly orders: readonly OrderPlaced[];
  /** Entries of the ledger, in the order they were made. */
  readonly entries: readonly OrderPlaced[];
  /** Balances of the ledger, by customer. */
  readonly balances: ReadonlyMap<string, number>;
  /** Requests for receipts, in the order they came. */
  readonly requests: readonly ReceiptLine[];
  /** What the relays wrote of their attempts: outcomes of each effect, by id. */
  readonly attempts: { readonly orders: Attempts; readonly ledger: Attempts };
  /** What is still to be done: effects and messages that wait, and that wait for a person's decision. */
  readonly left: Readonly<Record<string, number>>;
}

export type Attempts = ReadonlyMap<string, readonly string[]>;

export async function readBooks(world: World): Promise<Books> {
  const left: Record<string, number> = {};
  const read = async (name: "orders" | "ledger", table: string): Promise<[OrderPlaced[], Attempts]> =>
    withPool(world.databases[name].url, async (pool) => {
      for (const [what, n] of Object.entries(await leftIn(pool))) left[`${what} of ${name}`] = n;
      const { rows } = await pool.query<OrderPlaced>(table);
      return [rows, await attemptsIn(pool)];
    });
  const [orders, ordersAttempts] = await read(
    "orders",
    `select id as "order", customer, number, cents from orders order by customer, number`,
  );
  const [entries, ledgerAttempts] = await read(
    "ledger",
    `select order_id as "order", customer, number, cents from entry order by position`,
  );
  if (world.queue !== undefined) left["messages in the queue"] = await world.queue.waiting();
  const balances = await withPool(world.databases.ledger.url, (pool) =>
    pool.query<{ customer: string; cents: string }>("select customer, cents from account"),
  );
  return {
    orders,
    entries,
    balances: new Map(balances.rows.map(({ customer, cents }) => [customer, Number(cents)])),
    requests: existsSync(world.receiptsFile) ? readLines(readFileSync(world.receiptsFile, "utf8")) : [],
    attempts: { orders: ordersAttempts, ledger: ledgerAttempts },
    left,
  };
}

/** Whether every order is entered, every effect sent and every message handled, or waits for a person. */
export async function isDrained(world: World): Promise<boolean> {
  const { orders, ledger } = world.databases;
  // First: what a consumer has in hand is in no outbox, and the queue does not count it as waiting.
  const placed = await countIn(orders.url, "select count(*)::int as n from orders");
  if ((await countIn(ledger.url, "select count(distinct order_id)::int as n from entry")) < placed)
    return false;
  for (const { url } of Object.values(world.databases)) {
    const left = await withPool(url, leftIn);
    if (left["effects"]! > 0 || left["messages"]! > 0) return false;
  }
  return ((await world.queue?.waiting()) ?? 0) === 0;
}

const countIn = (url: string, statement: string): Promise<number> =>
  withPool(url, async (pool) => (await pool.query<{ n: number }>(statement)).rows[0]!.n);

async function leftIn(pool: pg.Pool): Promise<Readonly<Record<string, number>>> {
  const { rows } = await pool.query<Record<string, number>>(
    `select (select count(*) from inbox.outbox where state <> 'quarantined')::int as "effects",
            (select count(*) from inbox.outbox where state = 'quarantined')::int as "refused effects",
            (select count(*) from inbox.pending)::int as "messages",
            (select count(*) from inbox.quarantine)::int as "refused messages"`,
  );
  return rows[0]!;
}

async function attemptsIn(pool: pg.Pool): Promise<Attempts> {
  const { rows } = await pool.query<{ id: string; outcomes: string[] }>(
    `select effect_id as id, array_agg(outcome order by at, attempt) as outcomes
       from inbox.outbox_attempt group by effect_id`,
  );
  return new Map(rows.map(({ id, outcomes }) => [id, outcomes]));
}
