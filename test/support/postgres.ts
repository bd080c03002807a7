import { randomBytes } from "node:crypto";
import pg from "pg";
import { onTestEnd, type Scope } from "./cleanup.ts";
import { startSharedServer } from "./server.ts";

export { ownServer } from "./server.ts";

export interface TestDatabase {
  /** The server all tests share. */
  readonly url: string;
  /** A schema of the test's own, already created, dropped after the test. */
  readonly schema: string;
  /** A pool whose connections find unqualified tables in that schema. */
  readonly pool: pg.Pool;
}

export interface TestPoolOptions extends pg.PoolConfig {
  /** Where unqualified names are looked for. Default: the server's own search path. */
  readonly schema?: string | undefined;
  /** Default: the server all tests share. */
  readonly url?: string | undefined;
}

let shared: Promise<string> | undefined;

/** The URL of the server that all tests share: DATABASE_URL, or the runner's, or one that is started now. */
export function testUrl(): Promise<string> {
  const given = process.env["DATABASE_URL"] || process.env["TEST_DATABASE_URL"];
  return (shared ??= given ? Promise.resolve(given) : startSharedServer().then((server) => server.url));
}

/** A schema and a pool of the test's own. */
export async function testDatabase(t: Scope, options: TestPoolOptions = {}): Promise<TestDatabase> {
  const url = options.url ?? (await testUrl());
  const schema = await testSchema(t, url);
  return { url, schema, pool: await testPool(t, { schema, ...options }) };
}

/** Creates a schema with a name of its own and drops it, with all that is in it, after the test. */
export async function testSchema(t: Scope, url?: string): Promise<string> {
  const schema = `test_${randomBytes(8).toString("hex")}`;
  await admin(`create schema ${schema}`, url);
  onTestEnd(t, () => admin(`drop schema ${schema} cascade`, url));
  return schema;
}

/** A pool with pipelining, ended after the test. Fails the test if a connection was not given back. */
export async function testPool(t: Scope, options: TestPoolOptions = {}): Promise<pg.Pool> {
  const { schema, url, ...config } = options;
  const pool = new pg.Pool({
    connectionString: url ?? (await testUrl()),
    pipeline: true,
    max: 10,
    ...(schema === undefined ? {} : { options: `-c search_path=${schema},public` }),
    ...config,
  });
  pool.on("error", () => undefined);
  onTestEnd(t, async () => {
    if (pool.ending) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error("A connection was not given back to the pool.")), 10_000);
    });
    try {
      await Promise.race([pool.end(), late]);
    } finally {
      clearTimeout(timer);
    }
  });
  return pool;
}

async function admin(statement: string, url?: string): Promise<void> {
  const client = new pg.Client({ connectionString: url ?? (await testUrl()) });
  client.on("error", () => undefined);
  await client.connect();
  try {
    // A test that leaves a transaction open is to fail here, not to hang.
    await client.query("set lock_timeout = '10s'");
    await client.query(statement);
  } finally {
    await client.end();
  }
}
