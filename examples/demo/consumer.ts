// A consumer with an inbox: all of it. Three processes run this program, and each may be killed at any moment.
import pg from "pg";
// In a project of your own: from "transactional-inbox".
import { createInbox, formats, postgres, sql, type Message, type Received } from "../../src/index.ts";
import { brokerSource } from "./broker-source.ts";
import type { Payment } from "./payments.ts";
import { tellOutcomes } from "./tell-outcomes.ts";

const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"], max: 5 });

const inbox = createInbox({
  store: postgres(pool),
  // Part of every message's identity, so chosen once and never changed.
  consumer: "accounting",
  // A message during which its process died twice is put aside as dangerous. Here that is no message's fault.
  maxCrashes: 1_000,
});

// Which message a delivery is: a CloudEvent says so itself, by its source and id. A delivery that cannot be read becomes
// a rejected message, which goes to quarantine as it came.
const cloudEvents = formats.cloudevents();
const read = (body: string): Received => {
  const [item] = cloudEvents.read({ body });
  if (item?.kind !== "message") throw new Error("Every delivery of this queue holds one event.");
  return item.received;
};

// What is to be done for one payment. The inbox does it in the transaction that also records the payment's identity:
// both are committed, or neither is. There is nothing here about duplicates.
const credit = (message: Message) => {
  const { account, cents } = message.json() as Payment;
  return sql`update account set balance = balance + ${cents} where id = ${account}`.expecting(1);
};

// For the figures of the demo only.
tellOutcomes();

// Takes deliveries, claims them, runs `credit`, commits, and only then acknowledges. A process that is killed anywhere
// in between leaves its deliveries unacknowledged; whoever gets them next finds what was committed and what was not.
await inbox.run(brokerSource(read), credit, {
  // How soon a killed process counts as dead. The default of 10 s suits real life, and would make the demo longer.
  workerLeaseMs: 2_000,
}).finished;
await pool.end();
