import pg from "pg";
import { migrate } from "../../src/index.ts";
import { accounts } from "./payments.ts";

/** The tables of the demo, each side with a schema of its own. */
export interface Books {
  /** Where a side's consumers connect to: its `account` is the one they find. */
  urlOf(schema: string): string;
  /** The balances of a side in cents, by account less 1. */
  balances(schema: string): Promise<readonly number[]>;
  /** Payments the inbox has recorded as applied, and second bodies it has kept in quarantine. */
  ledger(): Promise<{ readonly applied: number; readonly conflicts: number }>;
  close(): Promise<void>;
}

/** Makes the inbox's tables, and the accounts, all empty. */
export async function openBooks(url: string, schemas: readonly string[]): Promise<Books> {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  // The server stops at the end, and may do so before the last connection is closed.
  pool.on("error", () => undefined);
  await migrate(pool);
  for (const schema of schemas) {
    await pool.query(`create schema ${schema}`);
    // Room for new row versions beside the old: a hundred rows are updated all the time.
    await pool.query(
      `create table ${schema}.account (id int primary key, balance bigint not null default 0) with (fillfactor = 20)`,
    );
    await pool.query(`insert into ${schema}.account (id) select generate_series(1, $1::int)`, [accounts]);
  }
  return {
    urlOf(schema) {
      const own = new URL(url);
      own.searchParams.set("options", `-c search_path=${schema}`);
      return own.href;
    },
    async balances(schema) {
      const { rows } = await pool.query<{ balance: string }>(
        `select balance from ${schema}.account order by id`,
      );
      return rows.map(({ balance }) => Number(balance));
    },
    async ledger() {
      const { rows } = await pool.query<{ applied: number; conflicts: number }>(
        `select (select count(*) from inbox.message where processed_at is not null)::int as applied,
                (select count(*) from inbox.quarantine where code = 'payload-conflict')::int as conflicts`,
      );
      return rows[0]!;
    },
    close: () => pool.end(),
  };
}
