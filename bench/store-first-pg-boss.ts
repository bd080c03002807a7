import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { benchPool } from "./setup.ts";
import {
  callers,
  effectSql,
  jobFrom,
  paymentsOf,
  untilEffects,
  type StoreFirstTimes,
} from "./store-first-job.ts";

// One process: sends jobs, then works as many in transactions of pg-boss's own, with what makes it fastest here: batches
// of 100, eight at once, no pause while batches are full, no maintenance meanwhile.

interface Job {
  readonly id: string;
  readonly data: { readonly account: number };
}

interface Boss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<void>;
  createQueue(name: string, options?: object): Promise<void>;
  send(name: string, data: object, options: object): Promise<string | null>;
  insert(name: string, jobs: readonly object[]): Promise<unknown>;
  work(
    name: string,
    options: object,
    handler: (
      jobs: readonly Job[],
      tx: { executeSql(text: string, values: readonly unknown[]): Promise<unknown> },
    ) => Promise<void>,
  ): Promise<string>;
}

const directory = resolve(process.env["PG_BOSS"] ?? join(".cache", "pg-boss"));
const module = pathToFileURL(join(directory, "node_modules", "pg-boss", "dist", "index.js")).href;
const { PgBoss } = (await import(module)) as { PgBoss: new (options: object) => Boss };

const job = jobFrom(process.argv);
const pool = benchPool(job.url, job.schema, 2, false);
const boss = new PgBoss({
  ...{ connectionString: job.url, schema: `${job.schema}_boss`, max: 20, supervise: false, schedule: false },
});
boss.on("error", (error) => {
  throw error;
});
await boss.start();
const queue = "payments";
await boss.createQueue(queue, { retryLimit: 5 });
const jobs = paymentsOf(job).map(({ id, payload }) => ({
  id,
  data: JSON.parse(payload.toString()) as object,
}));

let at = 0;
const storing = performance.now();
if (job.contender === "insert") {
  await callers(4, async () => {
    const list = jobs.slice(at, (at += 500));
    if (list.length > 0) await boss.insert(queue, list);
    return list.length > 0;
  });
} else {
  await callers(10, async () => {
    const next = jobs[at++];
    if (next !== undefined) await boss.send(queue, next.data, { id: next.id });
    return next !== undefined;
  });
}
const storeMs = performance.now() - storing;

let handled = 0;
const insert = effectSql(job.schema);
const working = performance.now();
await boss.work(
  queue,
  {
    ...{ transactional: true, batchSize: 100, localConcurrency: 8 },
    ...{ pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
  },
  async (list, tx) => {
    for (const { id, data } of list) await tx.executeSql(insert, [id, data.account]);
    handled += list.length;
  },
);
await untilEffects(
  () => handled,
  job.messages,
  async () => (await pool.query<{ n: number }>("select count(*)::int as n from effect")).rows[0]!.n,
);
const workMs = performance.now() - working;
await boss.stop({ graceful: false, wait: false });
await pool.end();
const times: StoreFirstTimes = { storeMs, workMs };
process.stdout.write(JSON.stringify(times), () => process.exit(0));
