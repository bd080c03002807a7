import { createInbox, migrate, postgres, type MessageHandler } from "../../src/index.ts";
import type { Source } from "../../src/sources/source.ts";
import { accountIn, benchPool } from "../setup.ts";
import { stopwatch, type Job, type Result, type Stopwatch } from "./job.ts";
import { openSource } from "./open-source.ts";

const lanes = 8;

const credit: MessageHandler = async (message, { tx }) => {
  const account = accountIn(message.text() ?? "");
  await tx.query("update account set balance = balance + $1 where id = $2", [1, account]);
};

/** The inbox with the options that users get, and a lane for each of the connections that handlers need. */
export async function measureInbox(job: Job): Promise<Result> {
  const pool = benchPool(job.databaseUrl, job.schema, lanes + 2, true);
  await migrate(pool, { schema: job.schema });
  const inbox = createInbox({
    store: postgres(pool, { schema: job.schema }),
    consumer: "accounting",
    lanes,
  });
  const watch = stopwatch(job.load.deliveries);
  const { source, close } = await openSource(job);
  const run = inbox.run(watched(source, watch), credit, job.inHand > 0 ? { maxInHand: job.inHand } : {});
  // It ends by itself only where it fails.
  await Promise.race([watch.finished, run.finished]);
  await run.stop();
  const { outcomes } = run.stats();
  const done = outcomes.applied + outcomes.duplicate;
  if (done !== job.load.deliveries)
    throw new Error(`${done} of ${job.load.deliveries} deliveries: ${JSON.stringify(outcomes)}`);
  await close();
  await pool.end();
  return watch.finished;
}

/** The source, with its first delivery and its acknowledgements seen by the watch. */
const watched = (source: Source, watch: Stopwatch): Source => ({
  ...source,
  start: (intake) =>
    source.start({
      ...intake,
      deliver(deliveries) {
        watch.delivered();
        return intake.deliver(deliveries);
      },
    }),
  async settle(settlements) {
    await source.settle(settlements);
    watch.acknowledged(settlements.length);
  },
});
