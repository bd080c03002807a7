import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createInbox, migrate, postgres, type MessageHandler } from "../src/index.ts";
import { admin, benchPool, freshSchema, quantile, textbookTable } from "./setup.ts";

const pauseMs = 3;

export interface LowRate {
  readonly inboxP50Ms: number;
  readonly plainP50Ms: number;
  readonly inboxP99Ms: number;
  readonly plainP99Ms: number;
}

/**
 * One message at a time with a pause before each, as at a low rate, by turns through the inbox and by hand (begin,
 * insert, update, commit), so that both meet the same machine. Milliseconds from hand-over to the answer of COMMIT.
 */
export async function lowRate(url: string, rounds: number): Promise<LowRate> {
  const { schema, drop } = await freshSchema(url, 1_000);
  await admin(url, [textbookTable(schema)]);
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
  const byHand = async (i: number): Promise<number> => {
    const begun = performance.now();
    await plain.query("begin");
    await plain.query(
      "insert into inbox_message (consumer, message_id) values ($1, $2) on conflict do nothing",
      ["accounting", randomUUID()],
    );
    await plain.query("update account set balance = balance + $1 where id = $2", [1, 1 + (i % 1_000)]);
    await plain.query("commit");
    return performance.now() - begun;
  };
  const byInbox = async (i: number): Promise<number> => {
    const begun = performance.now();
    const { outcome } = await inbox.process(
      { producer: "payments", id: randomUUID(), key: String(1 + (i % 1_000)), payload: `{"n":${i}}` },
      credit,
    );
    if (outcome !== "applied") throw new Error(`a message at low rate was ${outcome}`);
    return performance.now() - begun;
  };
  // A consumer that has run for a while: both ways have been compiled and their connections are open.
  for (let i = 0; i < 2_000; i++) {
    await byHand(i);
    await byInbox(i);
  }
  for (let i = 0; i < rounds; i++) {
    await sleep(pauseMs);
    plainMs.push(await byHand(i));
    await sleep(pauseMs);
    inboxMs.push(await byInbox(i));
  }
  plain.release();
  await plainPool.end();
  await pool.end();
  await drop();
  return {
    inboxP50Ms: quantile(inboxMs, 0.5),
    plainP50Ms: quantile(plainMs, 0.5),
    inboxP99Ms: quantile(inboxMs, 0.99),
    plainP99Ms: quantile(plainMs, 0.99),
  };
}
