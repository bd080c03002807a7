import { fork, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import type pg from "pg";
import { createBroker, type Broker } from "../../examples/demo/broker.ts";
import { bundle } from "../../scripts/bundle.ts";
import type { LocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { testPool, testSchema, testUrl } from "../support/postgres.ts";
import type { Body, Plan, Told } from "./plan.ts";

export interface Consumer {
  readonly child: ChildProcess;
  /** What it told of messages, as `id: outcome`. */
  readonly outcomes: readonly string[];
  /** Resolves with the signal it died of; rejects where it ended in another way. */
  killed(): Promise<NodeJS.Signals>;
  /** Resolves when it has killed its server. */
  serverKilled(): Promise<void>;
}

export interface CrashTest {
  readonly pool: pg.Pool;
  readonly schema: string;
  readonly broker: Broker;
  readonly publish: (bodies: readonly Body[], options?: { redelivered?: boolean }) => void;
  /** Starts a consumer process that the broker serves. */
  readonly start: (plan?: Partial<Plan>) => Consumer;
  /** How often each message took effect, by id. */
  readonly effects: () => Promise<Record<string, number>>;
  readonly balance: () => Promise<number>;
  /** Failed attempts on the record, by message. */
  readonly attempts: () => Promise<Record<string, number>>;
  /** Entries as `id: code, attempts, deliveries`. */
  readonly quarantined: () => Promise<readonly string[]>;
  /** Resolves when the query's first column is true; rejects after 20 s, or the time given. */
  readonly until: (query: string, timeoutMs?: number) => Promise<void>;
}

let program: Promise<string> | undefined;

/** Tables on the shared server or on one of the test's own, a broker, and consumer processes that end with the test. */
export async function crashTest(
  t: Scope,
  options: { readonly server?: LocalPostgres; readonly prefetch?: number } = {},
): Promise<CrashTest> {
  const path = await (program ??= bundle(join(import.meta.dirname, "consumer.ts")));
  const { server } = options;
  const url = server?.url ?? (await testUrl());
  // A server of the test's own goes with all its schemas.
  const schema = server === undefined ? await testSchema(t) : `crash_${randomBytes(6).toString("hex")}`;
  const pool = await testPool(t, { url, schema });
  if (server !== undefined) await pool.query(`create schema ${schema}`);
  await migrate(pool, { schema });
  await pool.query("create table effect (message_id text not null, n bigint generated always as identity)");
  await pool.query("create table account (id int primary key, balance bigint not null default 0)");
  await pool.query("insert into account (id) values (1)");

  const broker = createBroker({ prefetch: options.prefetch });
  const count = async (query: string): Promise<Record<string, number>> => {
    const { rows } = await pool.query<{ id: string; n: number }>(query);
    return Object.fromEntries(rows.map(({ id, n }) => [id, n]));
  };
  return {
    pool,
    schema,
    broker,
    publish: (bodies, how) =>
      broker.publish(
        bodies.map((body) => JSON.stringify(body)),
        how,
      ),
    start(plan = {}) {
      const whole: Plan = { url, schema, form: "tx", ...plan };
      const child = fork(path, [JSON.stringify(whole)], {
        execArgv: [],
        stdio: ["ignore", "inherit", "pipe", "ipc"],
      });
      broker.serve(child);
      return consumerOf(t, child);
    },
    effects: () => count("select message_id as id, count(*)::int as n from effect group by message_id"),
    async balance() {
      const { rows } = await pool.query<{ balance: string }>("select balance from account");
      return Number(rows[0]!.balance);
    },
    attempts: () => count("select message_id as id, count(*)::int as n from attempt group by message_id"),
    async quarantined() {
      const { rows } = await pool.query<{ entry: string }>(
        `select concat(coalesce(message_id, 'none'), ': ', code, ', ', attempts, ', ', deliveries) as entry
           from quarantine order by message_id, id`,
      );
      return rows.map(({ entry }) => entry);
    },
    async until(query, timeoutMs = 20_000) {
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const { rows } = await pool.query<{ done: boolean }>(`select (${query}) as done`);
        if (rows[0]!.done) return;
        if (Date.now() > deadline) throw new Error(`This did not become true in ${timeoutMs} ms: ${query}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
  };
}

function consumerOf(t: Scope, child: ChildProcess): Consumer {
  let said = "";
  child.stderr!.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const outcomes: string[] = [];
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const disconnected = once(child, "disconnect");
  const lostServer = new Promise<void>((resolve, reject) => {
    child.on("message", (told: Told | object) => {
      if ("outcome" in told) outcomes.push(`${told.id}: ${told.outcome}`);
      if ("serverKilled" in told) resolve();
    });
    child.once("exit", (code, signal) =>
      reject(new Error(`The consumer ended with ${code ?? signal}: ${said}`)),
    );
  });
  lostServer.catch(() => undefined);
  onTestEnd(t, async () => {
    child.kill("SIGKILL");
    await exited;
  });
  return {
    child,
    outcomes,
    async killed() {
      const [code, signal] = await exited;
      await disconnected;
      if (signal === null) throw new Error(`The consumer ended with ${code}: ${said}`);
      return signal;
    },
    serverKilled: () => lostServer,
  };
}
