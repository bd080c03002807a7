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
import { inTime, until } from "../support/in-time.ts";
import { testPool, testSchema, testUrl } from "../support/postgres.ts";
import type { Body, Plan, Told } from "./plan.ts";

export interface Consumer {
  readonly child: ChildProcess;
  /** What it told of messages, as `id: outcome`. */
  readonly outcomes: readonly string[];
  /** Resolves with the signal it died of; rejects where it ended in another way, or after 60 s, or the time given. */
  killed(patienceMs?: number): Promise<NodeJS.Signals>;
  /** Resolves when it has killed its server. */
  serverKilled(): Promise<void>;
}

export interface CrashTest {
  readonly pool: pg.Pool;
  readonly schema: string;
  /** Rejects what does not drain in 60 s, or the time given. */
  readonly broker: Omit<Broker, "drained"> & { drained(patienceMs?: number): Promise<void> };
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
  /** Resolves when the query's first column is true; rejects after 60 s, or the time given. */
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
  // Consumers have the same name, so that what they wait for can be told when they do not come to an end.
  const pool = await testPool(t, { url, schema, application_name: schema });
  if (server !== undefined) await pool.query(`create schema ${schema}`);
  await migrate(pool, { schema });
  await pool.query("create table effect (message_id text not null, n bigint generated always as identity)");
  await pool.query("create table account (id int primary key, balance bigint not null default 0)");
  await pool.query("insert into account (id) values (1)");

  const queue = createBroker({ prefetch: options.prefetch });
  const consumers: Seen[] = [];
  const state = async (): Promise<unknown> => ({
    broker: queue.counts(),
    consumers: consumers.map((seen) => seen()),
    sessions: await sessionsOf(pool, schema),
  });
  const broker: CrashTest["broker"] = {
    ...queue,
    drained: (ms?: number) =>
      inTime("everything that was published is acknowledged", queue.drained(), state, ms),
  };
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
      const { consumer, seen } = consumerOf(t, child, whole, state);
      consumers.push(seen);
      return consumer;
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
    until: (query, timeoutMs) =>
      until(
        query,
        async () => {
          const { rows } = await pool.query<{ holds: boolean }>(`select (${query}) as holds`);
          return { holds: rows[0]!.holds };
        },
        { ms: timeoutMs, seen: state },
      ),
  };
}

/** What a consumer came to, for people. */
type Seen = () => unknown;

/** What the sessions of this test do, and which others they wait for. */
async function sessionsOf(pool: pg.Pool, application: string): Promise<unknown> {
  const sessions = pool.query(
    `select pid, state, wait_event, pg_blocking_pids(pid) as behind,
            extract(epoch from clock_timestamp() - state_change)::int as seconds, left(query, 200) as query
       from pg_stat_activity
      where (application_name = $1 or pid in (
               select unnest(pg_blocking_pids(pid)) from pg_stat_activity where application_name = $1))
        and pid <> pg_backend_pid()`,
    [application],
  );
  return sessions.then(({ rows }) => rows as unknown, String);
}

function consumerOf(
  t: Scope,
  child: ChildProcess,
  { form, mode, die }: Plan,
  state: Seen,
): { readonly consumer: Consumer; readonly seen: Seen } {
  let said = "";
  child.stderr!.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const outcomes: string[] = [];
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const disconnected = once(child, "disconnect");
  const gone = Promise.all([exited, disconnected]);
  gone.catch(() => undefined);
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
  const seen: Seen = () => ({
    ...{ pid: child.pid, form, mode, die, ended: child.signalCode ?? child.exitCode },
    ...{ connected: child.connected, outcomes: outcomes.length, last: outcomes.slice(-3), said },
  });
  const consumer: Consumer = {
    child,
    outcomes,
    async killed(ms) {
      const [[code, signal]] = await inTime(`process ${child.pid} dies`, gone, state, ms);
      if (signal === null) throw new Error(`The consumer ended with ${code}: ${said}`);
      return signal;
    },
    serverKilled: () => inTime(`process ${child.pid} kills its server`, lostServer, state),
  };
  return { consumer, seen };
}
