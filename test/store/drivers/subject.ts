import pg from "pg";
import postgres from "postgres";
import type { Driver } from "../../../src/store/postgres/driver.ts";
import { pgDriver } from "../../../src/store/postgres/drivers/pg.ts";
import type { PgClientLike, PgPoolLike } from "../../../src/store/postgres/drivers/pg-client.ts";
import { postgresJsDriver } from "../../../src/store/postgres/drivers/postgres-js.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";

export interface OpenOptions {
  readonly max?: number;
  /** pg's query_timeout; other drivers have none. */
  readonly queryTimeoutMs?: number;
}

/** One way to give the inbox its connections, to be held against the contract. */
export interface Subject {
  readonly name: string;
  readonly pipelined: boolean;
  readonly queryTimeout: boolean;
  /** Whether a session is the server's, and not lent by a pooler from transaction to transaction. */
  readonly direct: boolean;
  open(t: Scope, url: string, options?: OpenOptions): Driver;
}

const end = (work: () => Promise<unknown>) => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, 5_000)));
  return Promise.race([work().then(() => undefined), late]).finally(() => clearTimeout(timer));
};

function pgPool(t: Scope, url: string, options: OpenOptions, pipeline: boolean): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.max ?? 4,
    pipeline,
    ...(options.queryTimeoutMs === undefined ? {} : { query_timeout: options.queryTimeoutMs }),
  });
  onTestEnd(t, () => end(() => pool.end()));
  return pool;
}

export const pgPlain: Subject = {
  name: "pg",
  pipelined: true,
  queryTimeout: true,
  direct: true,
  open: (t, url, options = {}) => pgDriver(pgPool(t, url, options, false)),
};

export const pgPipelined: Subject = {
  ...pgPlain,
  name: "pg with pipeline",
  open: (t, url, options = {}) => pgDriver(pgPool(t, url, options, true)),
};

export const pgPrepared: Subject = {
  ...pgPlain,
  name: "pg with prepare",
  open: (t, url, options = {}) => pgDriver(pgPool(t, url, options, true), { prepare: true }),
};

/** A pool behind something that shows no more than the public methods, as instrumentation may. */
export const pgWrapped: Subject = {
  ...pgPlain,
  name: "wrapped pg",
  pipelined: false,
  open(t, url, options = {}) {
    const pool = pgPool(t, url, options, false);
    const wrap = (client: pg.PoolClient): PgClientLike => ({
      query: (text, values) => client.query(text, values),
      on: (event: string, listener: (error: Error) => void) => client.on(event as "error", listener),
      removeListener: (event: string, listener: (error: Error) => void) =>
        client.removeListener(event, listener),
      release: (error) => client.release(error),
      getTransactionStatus: () => client.getTransactionStatus(),
    });
    const wrapped: PgPoolLike = {
      connect: async () => wrap(await pool.connect()),
      on: (event, listener) => pool.on(event, listener),
      options: pool.options,
    };
    return pgDriver(wrapped);
  },
};

export function postgresJsClient(
  t: Scope,
  url: string,
  options: postgres.Options<Record<string, never>> = {},
): postgres.Sql {
  const sql = postgres(url, { max: 4, onnotice: () => undefined, ...options });
  onTestEnd(t, () => end(() => sql.end({ timeout: 1 })));
  return sql;
}

export const postgresJs: Subject = {
  name: "postgres.js",
  pipelined: true,
  queryTimeout: false,
  direct: true,
  open: (t, url, options = {}) => postgresJsDriver(postgresJsClient(t, url, { max: options.max ?? 4 })),
};

export const postgresJsUnprepared: Subject = {
  ...postgresJs,
  name: "postgres.js without prepare",
  pipelined: false,
  open: (t, url, options = {}) =>
    postgresJsDriver(postgresJsClient(t, url, { max: options.max ?? 4, prepare: false })),
};
