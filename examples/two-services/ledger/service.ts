// The ledger: enters each order once, and asks for a receipt in the same transaction.
import { connect } from "amqplib";
import pg from "pg";
// In a project of your own: from "transactional-inbox" and "transactional-inbox/rabbitmq".
import { createInbox, postgres, type MessageHandler } from "../../../src/index.ts";
import { rabbitmq } from "../../../src/sources/rabbitmq/rabbitmq.ts";
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
const options = { workerLeaseMs: 2_000 };

const amqpUrl = process.env["AMQP_URL"];
const running = amqpUrl
  ? // Takes deliveries, commits, and only then acknowledges. What it holds when it is killed is delivered again.
    inbox.run(
      rabbitmq({
        client: () => connect(amqpUrl),
        queue: process.env["QUEUE"]!,
        // One number for good: a consumer that asks for another one would hand a single active consumer's place on.
        prefetch: 100,
      }),
      enter,
      options,
    )
  : // Without a broker the relay of the orders has put the messages into this database.
    inbox.work(enter, options);

process.once("SIGTERM", () => void running.stop());
await running.finished;
await pool.end();
