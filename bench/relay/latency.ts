import type { Latencies, LatencyJob } from "./latency-job.ts";
import { outboxSchema } from "./outbox-schema.ts";
import { runJob } from "./run-job.ts";

/** From the commit to the call of the destination. */
export interface LatencyTable {
  /** A relay with one destination that waits for something to do. */
  readonly idle: Latencies;
  /** One with ten destinations, all of them there. */
  readonly allLive: Latencies;
  /** The same with one that refuses every connection: of the nine others. */
  readonly oneDead: Latencies;
}

export async function measureLatency(url: string, quick: boolean): Promise<LatencyTable> {
  const run = async (
    job: Pick<LatencyJob, "destinations" | "dead" | "effects" | "everyMs">,
  ): Promise<Latencies> => {
    const { schema, drop } = await outboxSchema(url, 0);
    const latencies = await runJob<Latencies>("latency-job", { url, schema, ...job });
    await drop();
    return latencies;
  };
  const many = { destinations: 10, effects: quick ? 1_000 : 5_000, everyMs: 5 };
  return {
    idle: await run({ destinations: 1, dead: 0, effects: quick ? 50 : 200, everyMs: 80 }),
    allLive: await run({ ...many, dead: 0 }),
    oneDead: await run({ ...many, dead: 1 }),
  };
}
