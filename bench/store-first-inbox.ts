import { createInbox, postgres, statement, type Handler } from "../src/index.ts";
import { accountIn, benchPool } from "./setup.ts";
import {
  callers,
  effectSql,
  jobFrom,
  paymentsOf,
  untilEffects,
  type StoreFirstTimes,
} from "./store-first-job.ts";

// One process: accepts messages as a source hands them over, in lists; then works as many.

const job = jobFrom(process.argv);
const pool = benchPool(job.url, job.schema, 14, true);
const inbox = createInbox({
  store: postgres(pool, { schema: job.schema }),
  consumer: "accounting",
  lanes: 8,
});
const payments = paymentsOf(job);

let at = 0;
const storing = performance.now();
await callers(4, async () => {
  const list = payments.slice(at, (at += 500));
  if (list.length === 0) return false;
  const answers = await inbox.accept(
    list.map(({ id, payload }) => ({
      ...{ producer: "payments", id, payload },
      key: `account-${accountIn(payload.toString())}`,
    })),
  );
  const wrong = answers.find(({ outcome }) => outcome !== "stored");
  if (wrong !== undefined) throw new Error(`a message was ${wrong.outcome}`);
  return true;
});
const storeMs = performance.now() - storing;

let handled = 0;
const insert = effectSql(job.schema);
const handlers: Record<string, Handler> = {
  tx: async (message, { tx }) => {
    await tx.query(insert, [message.id, accountIn(message.text() ?? "")]);
    handled++;
  },
  statements: (message) => {
    handled++;
    return statement(insert, [message.id, accountIn(message.text() ?? "")]);
  },
};
const { rows: before } = await pool.query<{ n: number }>("select count(*)::int as n from effect");
const working = performance.now();
const work = inbox.work(handlers[job.contender] as Handler);
await untilEffects(
  () => handled,
  job.messages,
  async () =>
    (await pool.query<{ n: number }>("select count(*)::int as n from effect")).rows[0]!.n - before[0]!.n,
);
const workMs = performance.now() - working;
await work.stop();
await pool.end();
const times: StoreFirstTimes = { storeMs, workMs };
process.stdout.write(JSON.stringify(times));
