import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { createBroker, type Broker } from "../../examples/demo/broker.ts";
import { bundle } from "../../scripts/bundle.ts";
import { seededRandom } from "../../examples/demo/random.ts";
import { startLocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { testBinaries } from "../support/server.ts";
import { check, type Verdict } from "./check.ts";
import { startFleet } from "./fleet.ts";
import { hopeless, killMany, type Killed } from "./kill-many.ts";
import { startOperator } from "./operator.ts";
import { accounts, createMessages, type Messages } from "./messages.ts";

export interface ChaosOptions {
  /** Kills of consumers and of the server together. */
  readonly kills: number;
  readonly seed: number;
  /** Default 4. */
  readonly consumers?: number | undefined;
  /** How the consumers take messages. Default `inline`. */
  readonly mode?: ChaosMode | undefined;
  /** Told of progress now and then. */
  readonly onProgress?: ((text: string) => void) | undefined;
}

export type ChaosMode = "inline" | "store-first";

export interface ChaosReport extends Verdict, Killed {
  readonly seed: number;
  readonly mode: ChaosMode;
  /** Deaths by messages that kill their process; not among the kills. */
  readonly poisonDeaths: number;
  readonly deliveries: number;
  readonly redeliveries: number;
  /** Deliveries that never got an acknowledgement. */
  readonly unsettled: number;
  readonly durationMs: number;
}

const schema = "inbox";
const settleTimeoutMs = 60_000;

/** Kills until it has killed enough, lets everything settle, and compares the tables with what was sent. */
export async function chaos({
  kills,
  seed,
  consumers = 4,
  mode = "inline",
  onProgress = () => undefined,
}: ChaosOptions): Promise<ChaosReport> {
  const begun = performance.now();
  const random = seededRandom(seed);
  const directory = mkdtempSync(join(tmpdir(), "inbox-chaos-"));
  const program = await bundle(join(import.meta.dirname, "consumer.ts"));
  const server = await startLocalPostgres({ directory, binaries: testBinaries() });
  const messages = createMessages(random);
  const broker = createBroker({
    prefetch: 20,
    onAck({ body }) {
      const copy = messages.afterAck(body);
      if (copy !== undefined) broker.publish([copy], { redelivered: true });
    },
  });
  let pool = await prepare(server.url);
  const environment = { CHAOS_URL: server.url, CHAOS_SCHEMA: schema, CHAOS_MODE: mode };
  const fleet = startFleet(program, broker, consumers, environment);
  const operator = startOperator(pool, schema);
  try {
    const feed = startFeed(broker, messages);
    const killed = await killMany({ kills, random, server, broker, messages, fleet, onProgress });
    feed.stop();
    onProgress(`${killed.kills} kills done; waiting until everything is settled`);
    const late = AbortSignal.timeout(settleTimeoutMs);
    let drained = false;
    void broker.drained().then(() => (drained = true));
    while (!drained && !late.aborted && fleet.unexpected.length < hopeless) await sleep(20);
    const allDone = await operator.nothingPending(late);
    await operator.stop();
    const counts = broker.counts();
    const poisonDeaths = fleet.poisoned();
    await fleet.stop();
    await pool.end();
    pool = poolOf(server.url);
    const verdict = await check(pool, messages);
    return {
      seed,
      mode,
      ...killed,
      poisonDeaths,
      ...{
        deliveries: counts.deliveries,
        redeliveries: counts.redeliveries,
        unsettled: counts.ready + counts.inHand,
      },
      ...verdict,
      wrong: [
        ...verdict.wrong,
        ...fleet.unexpected,
        ...(allDone ? [] : ["messages were still pending when time was over"]),
      ],
      durationMs: Math.round(performance.now() - begun),
    };
  } finally {
    await fleet.stop();
    await operator.stop();
    await pool.end().catch(() => undefined);
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, options: `-c search_path=${schema},public`, max: 2 });
  // The server is killed under it.
  pool.on("error", () => undefined);
  return pool;
}

async function prepare(url: string): Promise<pg.Pool> {
  const pool = poolOf(url);
  await migrate(pool, { schema });
  // No unique key: an effect that is there twice is to be seen.
  await pool.query(
    "create table effect (message_id text not null, payload text not null, amount int not null)",
  );
  await pool.query("create table account (id int primary key, balance bigint not null default 0)");
  await pool.query("insert into account (id) select generate_series(1, $1::int)", [accounts]);
  return pool;
}

/** Keeps enough messages waiting that every consumer has work, and no more. */
function startFeed(broker: Broker, messages: Messages): { stop(): void } {
  const timer = setInterval(() => {
    if (broker.counts().ready > 80) return;
    for (let i = 0; i < 10; i++) broker.publish(messages.next());
  }, 20);
  return { stop: () => clearInterval(timer) };
}
