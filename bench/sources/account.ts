import type pg from "pg";
import { accountIn, benchPool } from "../setup.ts";
import type { Job } from "./job.ts";

const connections = 10;

/** What a consumer does without an inbox: one autocommit update a message, or nothing at all. */
export interface ByHand {
  /** Resolves when the message may be acknowledged. */
  handle(payload: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export function byHand({ way, databaseUrl, schema }: Job): ByHand {
  if (way === "drain") return { handle: async () => undefined, close: async () => undefined };
  const pool: pg.Pool = benchPool(databaseUrl, schema, connections, false);
  return {
    async handle(payload) {
      const account = accountIn(Buffer.from(payload).toString());
      await pool.query("update account set balance = balance + $1 where id = $2", [1, account]);
    },
    close: () => pool.end(),
  };
}
