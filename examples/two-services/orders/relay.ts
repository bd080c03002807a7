// The relay of the orders service: sends what its transactions asked for. Run as many of these as you like.
import { connect } from "amqplib";
import pg from "pg";
// In a project of your own: from "transactional-inbox" and "transactional-inbox/relay".
import { postgres } from "../../../src/index.ts";
import { createRelay, inboxDestination, rabbitmqDestination } from "../../../src/relay/relay.ts";

const pool = new pg.Pool({ connectionString: process.env["ORDERS_URL"], max: 5 });
const ledgerPool = new pg.Pool({ connectionString: process.env["LEDGER_URL"], max: 5 });

const amqpUrl = process.env["AMQP_URL"];
const relay = createRelay({
  store: postgres(pool),
  destinations: {
    ledger: amqpUrl
      ? // Confirmed by the broker, or it is not sent.
        rabbitmqDestination({ client: () => connect(amqpUrl), queue: process.env["QUEUE"]! })
      : // Without a broker: from database to database. The ledger's inbox takes it as if it had come from one.
        inboxDestination({ store: postgres(ledgerPool), consumer: "ledger" }),
  },
  // How soon others take over from a relay that was killed. The default of 15 s suits real life.
  leaseMs: 2_000,
  // An effect during which its relay died so often is put aside as dangerous. Here that is no effect's fault.
  maxCrashes: 1_000,
});
process.once("SIGTERM", () => void relay.stop().then(() => Promise.all([pool.end(), ledgerPool.end()])));
await relay.start();
