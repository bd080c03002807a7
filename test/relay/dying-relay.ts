// A relay process that dies where its plan says, for test/relay/process-dies.test.ts.
import pg from "pg";
import { httpDestination } from "../../src/relay/destinations/http/http.ts";
import { inboxDestination } from "../../src/relay/destinations/inbox.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";
import { relayTelemetry } from "../../src/telemetry/relay-channels.ts";
import type { RelayPlan, RelayPoint } from "./relay-plan.ts";

const plan = JSON.parse(process.argv[2]!) as RelayPlan;
const pool = new pg.Pool({ connectionString: plan.url, pipeline: true, max: 6 });
pool.on("error", () => undefined);

// The test has ended.
process.once("disconnect", () => process.exit());

let left = plan.die?.after ?? 0;
function reached(point: RelayPoint): void {
  if (plan.die?.at !== point || left-- > 0) return;
  process.kill(process.pid, "SIGKILL");
}
relayTelemetry.taken.subscribe(() => reached("taken"));
relayTelemetry.sending.subscribe(() => reached("sending"));
relayTelemetry.answered.subscribe(() => reached("answered"));
relayTelemetry.settled.subscribe(() => reached("settled"));

/** Calls `reached` when the statement that settles leaves: `settle sent` when it is with the kernel. */
pool.on("connect", (client) => {
  const { stream } = (client as unknown as { connection: { stream: NodeJS.WritableStream } }).connection;
  const write = stream.write.bind(stream) as (...parts: unknown[]) => boolean;
  const watched = (...parts: unknown[]): boolean => {
    const [bytes] = parts;
    const settles = Buffer.isBuffer(bytes) && bytes.includes("outbox_settle");
    if (settles) reached("settling");
    const flushed = write(...parts);
    if (settles) reached("settle sent");
    return flushed;
  };
  Object.assign(stream, { write: watched });
});

const store = postgres(pool, { schema: plan.schema, prepare: false });
const relay = createRelay({
  store,
  leaseMs: 400,
  // They are killed by nobody's fault.
  maxCrashes: 1_000,
  destinations: {
    there:
      plan.inboxSchema === undefined
        ? httpDestination({ url: plan.hook, concurrency: 4, retryDelayMs: 10, timeoutMs: 5_000 })
        : inboxDestination({
            store: postgres(pool, { schema: plan.inboxSchema, prepare: false }),
            ...{ consumer: "ledger", maxBatch: 7, retryDelayMs: 10 },
          }),
  },
});
await relay.start();
process.send?.("started");
