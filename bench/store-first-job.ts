import { paymentMaker, seeded, type Payment } from "./setup.ts";

/** What one process of a contender is to do: store messages, then handle as many. */
export interface StoreFirstJob {
  readonly url: string;
  /** With a table `effect (message_id, account)`, into which each message writes one row. */
  readonly schema: string;
  readonly messages: number;
  readonly seed: number;
  readonly contender: string;
}

/** What it prints. */
export interface StoreFirstTimes {
  readonly storeMs: number;
  readonly workMs: number;
}

/** How many accounts, which are the messages' keys. */
export const accounts = 1_000;

/**
 * The effect is a row of its own for each message: batches of many transactions at once that update the same accounts in
 * any order run into deadlocks where nothing hands messages out by key, and the comparison would be about that.
 */
export const effectSql = (schema: string): string =>
  `insert into ${schema}.effect (message_id, account) values ($1, $2)`;

export const effectTable = (schema: string): string =>
  `create table ${schema}.effect (message_id uuid not null, account int not null)`;

export const jobFrom = (argv: readonly string[]): StoreFirstJob =>
  JSON.parse(argv[2] ?? "{}") as StoreFirstJob;

export const paymentsOf = ({ messages, seed }: StoreFirstJob): readonly Payment[] =>
  paymentMaker(accounts, seeded(seed))(messages);

/** Calls `next` from so many callers at once until it has nothing more. */
export async function callers(count: number, next: () => Promise<boolean>): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, async () => {
      while (await next());
    }),
  );
}

/** Resolves when so many effects are committed; asked only when the handlers have run that often. Rejects after 5 minutes. */
export async function untilEffects(
  handled: () => number,
  wanted: number,
  committed: () => Promise<number>,
): Promise<void> {
  const deadline = performance.now() + 300_000;
  for (;;) {
    if (handled() >= wanted && (await committed()) >= wanted) return;
    if (performance.now() > deadline)
      throw new Error(`${handled()} of ${wanted} messages were handled in 5 minutes`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
