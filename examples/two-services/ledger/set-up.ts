import type pg from "pg";
// In a project of your own: from "transactional-inbox". Or run: inbox migrate
import { migrate } from "../../../src/index.ts";

/** The tables of the ledger's database. */
export async function setUpLedger(pool: pg.Pool): Promise<void> {
  await migrate(pool);
  // Without a unique key on purpose: an order that is entered twice is to be seen.
  await pool.query(
    `create table entry (position bigint generated always as identity primary key,
                         order_id text not null, customer text not null, number int not null, cents int not null)`,
  );
  await pool.query("create table account (customer text primary key, cents bigint not null)");
}
