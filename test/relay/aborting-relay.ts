// A relay process whose function kills it, for test/relay/crash-loop.test.ts.
import pg from "pg";
import { createRelay, sent, type Effect } from "../../src/relay/relay.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";

const plan = JSON.parse(process.argv[2]!) as { url: string; schema: string };
const pool = new pg.Pool({ connectionString: plan.url, pipeline: true, max: 6 });
pool.on("error", () => undefined);

// The test has ended.
process.once("disconnect", () => process.exit());

/** Resolves when the parent has it: what is told before a death is told. */
const tell = (text: string): Promise<void> => new Promise((resolve) => process.send!(text, () => resolve()));

async function deliver(effect: Effect): Promise<void> {
  await tell(`${effect.destination} ${effect.id}`);
  if (effect.id.startsWith("killer")) process.kill(process.pid, "SIGKILL");
}

const relay = createRelay({
  store: postgres(pool, { schema: plan.schema }),
  leaseMs: 600,
  maxCrashes: 2,
  destinations: {
    there: { deliver: (effect) => deliver(effect).then(() => sent()), concurrency: 4 },
    batched: {
      async deliverBatch(effects) {
        for (const effect of effects) await deliver(effect);
        return effects.map(() => sent());
      },
      maxBatch: 10,
    },
    elsewhere: deliver,
  },
});
await relay.start();
