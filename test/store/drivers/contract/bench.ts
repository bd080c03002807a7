import { setImmediate as turn } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import type pg from "pg";
import { InboxError } from "../../../../src/errors.ts";
import type { Driver, DriverConnection } from "../../../../src/store/postgres/driver.ts";
import { faultProxy, type FaultProxy } from "../../../support/fault-proxy.ts";
import { testPool, testSchema } from "../../../support/postgres.ts";
import type { OpenOptions, Subject } from "../subject.ts";

/** The URL a driver connects to, or `undefined` to skip. */
export type Reach = (t: TestContext) => Promise<string | undefined>;

export interface Bench {
  readonly driver: Driver;
  /** Straight to the server, whatever the driver goes through. */
  readonly admin: pg.Pool;
  /** A table (id text primary key, note text) of the test's own. */
  readonly table: string;
  ids(): Promise<string[]>;
}

/** Ways to add a test of the contract. */
export interface Contract {
  readonly subject: Subject;
  readonly contract: (
    name: string,
    run: (t: TestContext, b: Bench) => Promise<void>,
    options?: OpenOptions,
  ) => void;
  /** The driver reaches the server through a proxy that can spoil the connection. */
  readonly faulty: (
    name: string,
    run: (t: TestContext, b: Bench, proxy: FaultProxy) => Promise<void>,
    options?: OpenOptions,
  ) => void;
}

export const code = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;
export const isLost = (error: unknown): boolean =>
  error instanceof InboxError && error.code === "connection-lost";

export const pidOf = async (connection: DriverConnection): Promise<number> =>
  (await connection.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;
export const terminate = (b: Bench, pid: number): Promise<unknown> =>
  b.admin.query("select pg_terminate_backend($1)", [pid]);
export const lossOf = (connection: DriverConnection): Promise<Error> =>
  new Promise<Error>((resolve) => connection.onLost(resolve));

/** Asks again until it is so; the test's own timeout is the end. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await turn();
}

export function contractOf(subject: Subject, reach: Reach): Contract {
  const bench = async (t: TestContext, url: string, options?: OpenOptions): Promise<Bench> => {
    const schema = await testSchema(t);
    const admin = await testPool(t);
    const table = `${schema}.entry`;
    await admin.query(`create table ${table} (id text primary key, note text)`);
    const ids = async () =>
      (await admin.query<{ id: string }>(`select id from ${table} order by id`)).rows.map((row) => row.id);
    return { driver: subject.open(t, url, options), admin, table, ids };
  };

  return {
    subject,
    contract(name, run, options) {
      void test(`${subject.name}: ${name}`, { timeout: 60_000 }, async (t) => {
        const url = await reach(t);
        if (url !== undefined) await run(t, await bench(t, url, options));
      });
    },
    faulty(name, run, options) {
      void test(`${subject.name}: ${name}`, { timeout: 60_000 }, async (t) => {
        const url = await reach(t);
        if (url === undefined) return;
        const target = new URL(url);
        const proxy = await faultProxy(t, { host: target.hostname, port: Number(target.port || 5432) });
        target.hostname = proxy.host;
        target.port = String(proxy.port);
        await run(t, await bench(t, target.href, options), proxy);
      });
    },
  };
}
