import { randomUUID } from "node:crypto";
import { createInbox, migrate, postgres, type MessageHandler } from "../src/index.ts";
import { admin, benchPool, freshSchema, quantile } from "./setup.ts";

export interface LowRate {
  readonly inboxP50Ms: number;
  readonly plainP50Ms: number;
  readonly inboxP99Ms: number;
  readonly plainP99Ms: number;
}

/**
 * One message at a time, by turns through the inbox and by hand (begin, insert, update, commit), so that both meet the
 * same machine. Milliseconds from hand-over to the answer of COMMIT.
 */
export async function lowRate(url: string, rounds: number): Promise<LowRate> {
  const { schema, drop } = await freshSchema(url, 1_000);
  await admin(url, [`create table ${schema}.inbox_message (message_id text primary key)`]);
  const pool = benchPool(url, schema, 4, true);
  await migrate(pool, { schema });
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  const plainPool = benchPool(url, schema, 1, false);
  const plain = await plainPool.connect();
  const credit: MessageHandler = async (message, { tx }) => {
    await tx.query("update account set balance = balance + $1 where id = $2", [1, Number(message.key)]);
  };
  const inboxMs: number[] = [];
  const plainMs: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const account = 1 + (i % 1_000);
    const id = randomUUID();
    let begun = performance.now();
    await plain.query("begin");
    await plain.query("insert into inbox_message (message_id) values ($1) on conflict do nothing", [id]);
    await plain.query("update account set balance = balance + $1 where id = $2", [1, account]);
    await plain.query("commit");
    plainMs.push(performance.now() - begun);
    begun = performance.now();
    const { outcome } = await inbox.process(
      { producer: "payments", id, key: String(account), payload: `{"n":${i}}` },
      credit,
    );
    inboxMs.push(performance.now() - begun);
    if (outcome !== "applied") throw new Error(`a message at low rate was ${outcome}`);
  }
  plain.release();
  await plainPool.end();
  await pool.end();
  await drop();
  // The first messages meet cold connections and code.
  const warm = Math.min(100, rounds >> 2);
  const [ours, theirs] = [inboxMs.slice(warm), plainMs.slice(warm)];
  return {
    inboxP50Ms: quantile(ours, 0.5),
    plainP50Ms: quantile(theirs, 0.5),
    inboxP99Ms: quantile(ours, 0.99),
    plainP99Ms: quantile(theirs, 0.99),
  };
}
