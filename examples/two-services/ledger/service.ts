// The ledger: enters each order once, and asks for a receipt in the same transaction.
import pg from "pg";
// In a project of your own: from "transactional-inbox".
import { createInbox, postgres, type MessageHandler } from "../../../src/index.ts";
import type { OrderPlaced } from "../order-placed.ts";

const pool = new pg.Pool({ connectionString: process.env["LEDGER_URL"], max: 8 });

const inbox = createInbox({
  store: postgres(pool),
  consumer: "ledger",
  // A message during which its process died twice is put aside as dangerous. Here that is no message's fault.
  maxCrashes: 1_000,
});

// The identity of the message, the entry, the balance and the wish for a receipt are committed together, or none of
// them is. There is nothing here about duplicates.
const enter: MessageHandler = async (message, { tx, outbox }) => {
  const { order, customer, number, cents } = message.json() as OrderPlaced;
  await tx.query("insert into entry (order_id, customer, number, cents) values ($1, $2, $3, $4)", [
    ...[order, customer, number, cents],
  ]);
  await tx.query(
    `insert into account (customer, cents) values ($1, $2)
     on conflict (customer) do update set cents = account.cents + excluded.cents`,
    [customer, cents],
  );
  outbox.send({
    id: `receipt/${order}`,
    destination: "receipts",
    key: customer,
    json: { order, customer, number, cents },
  });
};

// How soon a killed process counts as dead. The default of 10 s suits real life.
const work = inbox.work(enter, { workerLeaseMs: 2_000 });

process.once("SIGTERM", () => void work.stop());
await work.finished;
await pool.end();
