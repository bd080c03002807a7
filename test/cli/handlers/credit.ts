import { PermanentError, sql, type Message } from "../../../src/index.ts";

interface Payment {
  readonly account: string;
  readonly amount: number;
  readonly kind?: string;
}

export const options = { consumer: "accounting", handlerVersion: "2", retry: { delayMs: 1, maxAttempts: 3 } };

export const prepare = async (db: { query(text: string): Promise<unknown> }): Promise<void> => {
  await db.query("create table if not exists account (id text primary key, balance bigint not null)");
};

/** Adds the amount to the account; some kinds go wrong in their own way. */
export default (message: Message): unknown => {
  const { account, amount, kind } = message.json() as Payment;
  if (kind === "never") throw new PermanentError("an unknown kind of account");
  if (kind === "always-fails") throw new Error("no luck");
  return sql`insert into account (id, balance) values (${account}, ${amount})
    on conflict (id) do update set balance = account.balance + excluded.balance`;
};
