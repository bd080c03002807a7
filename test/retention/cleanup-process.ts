import pg from "pg";
import { postgres } from "../../src/index.ts";
import { createCleanup } from "../../src/retention/retention.ts";

// One process that cleans up: DATABASE_URL and the schema as its argument. It says when a sweep of it has ended.

const [schema = ""] = process.argv.slice(2);
const pool = new pg.Pool({
  connectionString: process.env["DATABASE_URL"],
  max: 1,
  application_name: `cleanup ${process.pid}`,
});
pool.on("error", () => undefined);
const cleanup = createCleanup({
  store: postgres(pool, { schema }),
  ...{ everyMs: 3_600_000, leaseMs: 500, skewMs: 0, batchMs: 5, dutyPercent: 20 },
  onSweep: ({ ended, identities }) => void process.stdout.write(`${JSON.stringify({ ended, identities })}\n`),
});
await cleanup.start();
process.stdout.write("started\n");
