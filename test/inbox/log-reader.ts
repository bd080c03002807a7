// A process that applies the records of a log until it is killed, or through.
import pg from "pg";
import { createInbox, createMessage, postgres } from "../../src/index.ts";
import type { Delivery, Intake, Source } from "../../src/sources/source.ts";

const [url = "", schema = "", last = "0"] = process.argv.slice(2);
const pool = new pg.Pool({
  connectionString: url,
  options: `-c search_path=${schema},public`,
  pipeline: true,
  max: 6,
});
pool.on("error", () => undefined);
const logs = ["a", "b", "c"];
let open = 0;

async function read(intake: Intake, log: string): Promise<void> {
  const ask = { cluster: undefined, incarnation: "t1", part: log, begin: 0n, accept: [] };
  const taken = await intake.takeCursor!(log, ask);
  if (taken.kind !== "taken") throw new Error(taken.kind);
  // As a broker whose offsets lag behind: some of it comes again.
  let previous: bigint | undefined =
    taken.applied === undefined || taken.applied < 20n ? -1n : taken.applied - 20n;
  for (let offset = previous + 1n; offset <= BigInt(last); offset++) {
    const received = createMessage({
      ...{ producer: log, id: `t1/${log}/${offset}`, key: String(offset % 7n) },
      payload: JSON.stringify({ offset: Number(offset) }),
    });
    const delivery: Delivery = {
      ...{ received, redelivered: false },
      position: { ...taken.position, record: { offset, previous } },
    };
    previous = offset;
    open++;
    await intake.deliver([delivery]);
  }
}

let intake: Intake | undefined;
let through = false;
const source: Source = {
  name: "log",
  async start(given) {
    intake = given;
    void Promise.all(logs.map((log) => read(given, log))).then(
      () => {
        through = true;
        if (open === 0) given.end();
      },
      (error: unknown) => given.end(error as Error),
    );
  },
  async settle(list) {
    open -= list.filter(([, { kind }]) => kind === "ack").length;
    if (through && open === 0) intake?.end();
  },
  stop: async () => undefined,
  close: async () => undefined,
};

const inbox = createInbox({
  store: postgres(pool, { schema }),
  ...{ consumer: "accounting", lanes: 3, maxBatch: 25 },
  retry: { delayMs: 10, jitter: 0, maxAttempts: 3 },
});
const run = inbox.run(
  source,
  async (message, { tx }) => {
    const { offset } = message.json() as { offset: number };
    // Each first attempt of these fails, in whatever process it is.
    const failed = await pool.query(`select from ${schema}.attempt where message_id = $1`, [message.id]);
    if (offset % 50 === 13 && failed.rows.length === 0) throw new Error("once");
    await tx.query("insert into applied (log, record) values ($1, $2)", [message.producer, offset]);
  },
  { workerLeaseMs: 500, maxInHand: 200 },
);
await run.finished;
await pool.end();
