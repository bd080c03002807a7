import type pg from "pg";
import {
  accountIn,
  admin,
  benchPool,
  freshSchema,
  paymentMaker,
  seeded,
  textbookTable,
  total,
  type Payment,
} from "../setup.ts";
import type { Contender, Measured, RunOptions } from "./contender.ts";

const connections = 10;

/** begin, insert, update, mark processed, commit: five round trips, ten connections, one message at a time each. */
export const textbook: Contender = {
  name: "textbook",
  run: (options) =>
    loop(options, async (client, { id, payload }) => {
      const account = accountIn(payload.toString());
      await client.query("begin");
      const claimed = await client.query(
        "insert into inbox_message (consumer, message_id) values ($1, $2) on conflict do nothing",
        ["accounting", id],
      );
      if (claimed.rowCount === 1) {
        await client.query("update account set balance = balance + $1 where id = $2", [1, account]);
        await client.query(
          "update inbox_message set processed_at = now() where consumer = $1 and message_id = $2",
          ["accounting", id],
        );
      }
      await client.query("commit");
    }),
};

/** No inbox: one autocommit update a message, ten connections. A redelivery would count twice. */
export const unsafe: Contender = {
  name: "unsafe",
  run: (options) =>
    loop(options, async (client, { payload }) => {
      const account = accountIn(payload.toString());
      await client.query("update account set balance = balance + $1 where id = $2", [1, account]);
    }),
};

async function loop(
  { url, accounts, ms, seed }: RunOptions,
  handle: (client: pg.PoolClient, payment: Payment) => Promise<void>,
): Promise<Measured> {
  const { schema, drop } = await freshSchema(url, accounts);
  await admin(url, [textbookTable(schema)]);
  const pool = benchPool(url, schema, connections, false);
  const make = paymentMaker(accounts, seeded(seed));
  let messages = 0;
  const latencies: number[] = [];
  const work = await Promise.all(Array.from({ length: connections }, () => pool.connect()));
  const started = performance.now();
  const deadline = started + ms;
  await Promise.all(
    work.map(async (client) => {
      while (performance.now() < deadline) {
        for (const payment of make(50)) {
          const begun = performance.now();
          await handle(client, payment);
          if (messages++ % 16 === 0) latencies.push(performance.now() - begun);
        }
      }
      client.release();
    }),
  );
  const elapsed = performance.now() - started;
  const effects = await total(pool);
  if (effects !== messages) throw new Error(`${effects} effects for ${messages} messages`);
  await pool.end();
  await drop();
  return { messages, ms: elapsed, latencies };
}
