import { createOutbox, postgres } from "../../src/index.ts";
import { createRelay, type DeliverFunction } from "../../src/relay/relay.ts";
import { benchPool, quantile } from "../setup.ts";

// One process: asks for effects now and then, in transactions of their own, and takes the time from COMMIT's answer to
// the call of the destination, of an idle relay.

/** What one process is to measure. */
export interface LatencyJob {
  readonly url: string;
  readonly schema: string;
  /** Destinations, of which the first so many refuse every connection. */
  readonly destinations: number;
  readonly dead: number;
  readonly effects: number;
  readonly everyMs: number;
}

/** What it prints, in milliseconds; of the destinations that live. */
export interface Latencies {
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
}

const { url, schema, destinations, dead, effects, everyMs } = JSON.parse(
  process.argv[2] ?? "{}",
) as LatencyJob;
const pool = benchPool(url, schema, 12, true);
const store = postgres(pool, { schema });
const outbox = createOutbox({ store, producer: "orders" });
const committed = new Map<string, number>();
const arrived = new Map<string, number>();

const lives: DeliverFunction = (effect) => {
  arrived.set(effect.id, performance.now());
};
const refusesAll: DeliverFunction = () => {
  throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
};
const names = Array.from({ length: destinations }, (_, i) => `there-${i}`);
const relay = createRelay({
  store,
  destinations: Object.fromEntries(names.map((name, i) => [name, i < dead ? refusesAll : lives])),
});
await relay.start();
for (let i = 0; i < effects; i++) {
  const destination = names[i % names.length]!;
  const id = `effect-${i}`;
  const client = await pool.connect();
  await client.query("begin");
  await outbox.send(client, { id, destination, key: `account-${i % 100}`, payload: "x".repeat(150) });
  await client.query("commit");
  if (i % names.length >= dead) committed.set(id, performance.now());
  client.release();
  await new Promise((resolve) => setTimeout(resolve, everyMs * (0.5 + Math.random())));
}
const deadline = performance.now() + 30_000;
while (arrived.size < committed.size) {
  if (performance.now() > deadline) throw new Error(`${arrived.size} of ${committed.size} effects arrived`);
  await new Promise((resolve) => setTimeout(resolve, 10));
}
const latencies = [...committed].map(([id, at]) => Math.max(0, arrived.get(id)! - at));
const rounded = (value: number): number => Math.round(value * 10) / 10;
const answer: Latencies = {
  p50: rounded(quantile(latencies, 0.5)),
  p99: rounded(quantile(latencies, 0.99)),
  longest: rounded(Math.max(...latencies)),
};
process.stdout.write(JSON.stringify(answer));
await relay.stop();
process.exit(0);
