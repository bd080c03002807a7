import type pg from "pg";
// In a project of your own: from "transactional-inbox". Or run: inbox migrate
import { migrate } from "../../../src/index.ts";

/** The tables of the orders database. */
export async function setUpOrders(pool: pg.Pool): Promise<void> {
  await migrate(pool);
  await pool.query("create table customer (id text primary key, orders int not null)");
  await pool.query(
    "create table orders (id text primary key, customer text not null, number int not null, cents int not null)",
  );
}
